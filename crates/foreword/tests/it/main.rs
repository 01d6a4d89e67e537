//! Foreword as a user meets it: the real program, real files, real signals.

mod support;

mod spine;

mod client;
