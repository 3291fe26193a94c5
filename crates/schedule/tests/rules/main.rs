//! The rules of schedules, as scripts of commands and what happens.

mod script;

mod changes;
mod claims;
mod missed;
mod overlap;
mod passes;
mod retries;
mod timing;
