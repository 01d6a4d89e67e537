use super::*;

#[test]
fn smoke() {
    let r = read("<observation><type>bugfix</type>\n<title>x <observation> y</title><narrative>the parser looks for <observation> and </fact> and </narrative> ok</narrative><facts><fact>a</fact><fact>b</fact></facts></observation>");
    eprintln!("{r:#?}");
    assert_eq!(r.observations.len(), 1);
}
