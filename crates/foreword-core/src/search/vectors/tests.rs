use proptest::prelude::*;

use super::*;

/// Vectors of real texts, as the model makes them (testdata/embed).
fn real() -> Vec<Vector> {
    let (numbers, _) = include_bytes!("../../../../../testdata/embed/vectors.i16").as_chunks();
    let numbers: Vec<f32> = numbers
        .iter()
        .map(|it| i16::from_le_bytes(*it).into())
        .collect();
    let vectors = numbers.chunks_exact(DIMENSIONS);
    vectors.map(|it| unit(it.try_into().unwrap())).collect()
}

fn unit(vector: Vector) -> Vector {
    let length = dot(&vector, &vector).sqrt();
    vector.map(|number| number / length)
}

fn dot(a: &Vector, b: &Vector) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Numbers between -1 and 1 that are the same in every run.
fn noise() -> impl FnMut() -> f32 {
    let mut state = 1_u64;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as f32 / (1_u64 << 30) as f32 - 1.0
    }
}

fn near(vector: &Vector, by: f32, noise: &mut impl FnMut() -> f32) -> Vector {
    unit(vector.map(|number| number + by * noise()))
}

fn axis(at: usize) -> Vector {
    std::array::from_fn(|it| f32::from(u8::from(it == at)))
}

#[test]
fn the_nearest_are_those_of_an_exact_comparison() {
    // Each real vector with neighbours from near to far, as a memory has of one subject.
    let mut noise = noise();
    let mut all: Vec<Vector> = real();
    for vector in real() {
        all.extend((1..25).map(|it| near(&vector, 0.005 * it as f32, &mut noise)));
    }
    let mut vectors = Vectors::default();
    for (owner, vector) in all.iter().enumerate() {
        vectors.push(owner as i64, vector);
    }
    let (mut found, mut cosines_off) = (0, 0.0_f32);
    let queries: Vec<Vector> = real()
        .iter()
        .step_by(4)
        .map(|it| near(it, 0.02, &mut noise))
        .collect();
    for query in &queries {
        let mut exact: Vec<(f32, i64)> = (0..)
            .zip(&all)
            .map(|(owner, it)| (dot(query, it), owner))
            .collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0));
        let hits = vectors.nearest(query, 20);
        assert_eq!(hits.len(), 20);
        assert_eq!(hits, vectors.nearest_plain(query, 20), "on any processor");
        found += exact[..20]
            .iter()
            .filter(|(_, owner)| hits.iter().any(|hit| hit.0 == *owner))
            .count();
        for (owner, cosine) in hits {
            cosines_off = cosines_off.max((dot(query, &all[owner as usize]) - cosine).abs());
        }
    }
    let recall = found as f64 / (20 * queries.len()) as f64;
    assert!(recall >= 0.99, "{recall}");
    assert!(cosines_off < 0.003, "{cosines_off}");
}

#[test]
fn the_nearest_are_as_many_as_there_are_and_those_of_an_owner_however_far() {
    let mut vectors = Vectors::default();
    for _ in 0..2000 {
        vectors.push(1, &axis(0));
    }
    vectors.push(2, &axis(0).map(|it| -it));
    assert_eq!(vectors.near(&axis(0), [2, 3].into_iter()), [(2, -1.0)]);
    assert_eq!(vectors.nearest(&axis(0), 3), [(1, 1.0); 3]);
    assert_eq!(vectors.nearest(&axis(0), 3000).len(), 2001);
    assert_eq!(vectors.nearest(&axis(0), 0), []);
    assert_eq!(Vectors::default().nearest(&axis(0), 3), []);
}

#[test]
fn an_owner_is_removed_with_all_its_records() {
    let mut vectors = Vectors::default();
    for (at, owner) in [7, 7, 8, 6, 6].into_iter().enumerate() {
        vectors.push(owner, &axis(at));
    }
    vectors.remove(7);
    vectors.remove(5);
    assert_eq!(vectors.nearest(&axis(2), 5).len(), 3);
    assert_eq!(vectors.nearest(&axis(2), 1), [(8, 1.0)]);
    assert_eq!(
        vectors.near(&axis(4), [7, 6].into_iter()),
        [(6, 0.0), (6, 1.0)]
    );
    assert_eq!((vectors.of(7), vectors.of(8)), (None, Some(axis(2))));
    vectors.push(7, &axis(9));
    assert_eq!(vectors.of(7), Some(axis(9)));
}

fn three() -> Vectors {
    let mut vectors = Vectors::default();
    for (owner, vector) in (5..).zip(&real()[..3]) {
        vectors.push(owner, vector);
    }
    vectors
}

#[test]
fn pages_add_up() {
    let (mut both, mut six) = (three(), three());
    both.add_page(&three().to_page()).unwrap();
    for (owner, vector) in (5..).zip(&real()[..3]) {
        six.push(owner, vector);
    }
    assert_eq!(both, six);
}

#[test]
fn every_damage_of_a_page_is_noticed_and_nothing_of_it_taken() {
    let page = three().to_page();
    let mut vectors = three();
    let mut refuse = |page: &[u8]| assert_eq!(vectors.add_page(page), Err(PageError::Damaged));
    for at in 0..page.len() {
        for change in [1, 0x80, 0xff] {
            let mut page = page.clone();
            page[at] ^= change;
            refuse(&page);
        }
        refuse(&page[..at]);
        refuse(&page[at + 1..]);
        let doubled = [&page[..at], &page[at..=at], &page[at..]].concat();
        refuse(&doubled);
    }
    refuse(&vec![0; page.len()]);
    let mut swapped = page.clone();
    swapped.swap(100, 101);
    assert_ne!(swapped, page);
    refuse(&swapped);
    assert_eq!(vectors, three());
}

#[test]
fn a_page_of_another_version_says_so() {
    let mut page = three().to_page();
    page[0] = VERSION + 1;
    let end = page.len() - CHECKSUM;
    let sum = checksum(&page[..end]);
    page[end..].copy_from_slice(&sum);
    assert_eq!(
        Vectors::default().add_page(&page),
        Err(PageError::OtherVersion(VERSION + 1))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_page_gives_back_what_went_in(records in prop::collection::vec((any::<i64>(), prop::array::uniform32(-1.0_f32..1.0)), 0..20)) {
        let mut vectors = Vectors::default();
        for (owner, numbers) in &records {
            vectors.push(*owner, &std::array::from_fn(|at| numbers[at % 32]));
        }
        let mut read = Vectors::default();
        prop_assert_eq!(read.add_page(&vectors.to_page()), Ok(()));
        prop_assert_eq!(read, vectors);
    }

    #[test]
    fn any_bytes_are_a_page_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(Vectors::default().add_page(&bytes).is_err());
    }
}
