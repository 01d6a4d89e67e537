//! A model for tests: a function answers at once, and every question is kept.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Failure, ModelCall, Provider, Question, Usage};

/// Clones share the function and the questions, so that a test can change and read them while a
/// worker has the model.
#[derive(Clone)]
pub struct Scripted(Rc<RefCell<Script>>);

/// From a question's text to its answer.
type ScriptedAnswer = Box<dyn FnMut(&str) -> Result<String, Failure>>;

struct Script {
    answer: ScriptedAnswer,
    questions: Vec<String>,
}

impl Scripted {
    pub fn new(answer: impl FnMut(&str) -> Result<String, Failure> + 'static) -> Scripted {
        Scripted(Rc::new(RefCell::new(Script {
            answer: Box::new(answer),
            questions: Vec::new(),
        })))
    }

    /// Replaces the function that answers.
    pub fn answer(&self, answer: impl FnMut(&str) -> Result<String, Failure> + 'static) {
        self.0.borrow_mut().answer = Box::new(answer);
    }

    pub fn questions(&self) -> Vec<String> {
        self.0.borrow().questions.clone()
    }
}

impl Provider for Scripted {
    async fn ask(&mut self, question: &Question<'_>) -> ModelCall {
        let mut script = self.0.borrow_mut();
        script.questions.push(question.text.to_owned());
        ModelCall {
            requests: 1,
            model: Some("scripted".to_owned()),
            usage: Usage::default(),
            cost_usd: Some(0.0),
            answer: (script.answer)(question.text),
        }
    }
}
