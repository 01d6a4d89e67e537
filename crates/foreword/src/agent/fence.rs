//! The fence around recorded text in a question: `<data ID>` and `</data ID>`. The id is random, so that
//! recorded text cannot contain the fence's end; hidden characters in it are shown as marks. `prompts/init.md` tells the model what a fence means.

use foreword_core::text::with_marks;

/// The fence of one question.
pub struct Fence(String);

impl Fence {
    pub fn new() -> Fence {
        // The end of a UUID is random.
        Fence(uuid::Uuid::now_v7().simple().to_string().split_off(24))
    }

    /// The text between its fence; `none` if there is no text.
    pub fn around(&self, text: &str) -> String {
        let Fence(id) = self;
        match text.trim() {
            "" => "none".to_owned(),
            text => format!("<data {id}>\n{}\n</data {id}>", with_marks(text)),
        }
    }
}
