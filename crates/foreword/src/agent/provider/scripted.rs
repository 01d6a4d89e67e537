//! A model for tests: a function answers at once, and every question is kept.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Failure, ModelCall, Provider, Question, Usage};
use crate::agent::conversation::Conversation;

/// Clones share the function and the questions, so that a test can change and read them while a
/// worker has the model.
#[derive(Clone)]
pub struct Scripted(Rc<RefCell<Script>>);

/// From a question's text to its answer.
type ScriptedAnswer = Box<dyn FnMut(&str) -> Result<String, Failure>>;

struct Script {
    answer: ScriptedAnswer,
    questions: Vec<String>,
    /// For each question the number of exchanges before it in its conversation; none if it stood
    /// alone.
    carried: Vec<Option<usize>>,
}

impl Scripted {
    pub fn new(answer: impl FnMut(&str) -> Result<String, Failure> + 'static) -> Scripted {
        Scripted(Rc::new(RefCell::new(Script {
            answer: Box::new(answer),
            questions: Vec::new(),
            carried: Vec::new(),
        })))
    }

    /// Replaces the function that answers.
    pub fn answer(&self, answer: impl FnMut(&str) -> Result<String, Failure> + 'static) {
        self.0.borrow_mut().answer = Box::new(answer);
    }

    pub fn questions(&self) -> Vec<String> {
        self.0.borrow().questions.clone()
    }

    pub fn carried(&self) -> Vec<Option<usize>> {
        self.0.borrow().carried.clone()
    }
}

impl Provider for Scripted {
    async fn ask(
        &mut self,
        question: &Question<'_>,
        conversation: Option<&mut Conversation>,
    ) -> ModelCall {
        let mut script = self.0.borrow_mut();
        script.questions.push(question.text.to_owned());
        let exchanges = conversation.map(|it| it.exchanges.len());
        script.carried.push(exchanges);
        ModelCall {
            requests: 1,
            model: Some("scripted".to_owned()),
            usage: Usage::default(),
            cost_usd: Some(0.0),
            answer: (script.answer)(question.text),
        }
    }
}
