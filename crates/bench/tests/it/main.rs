//! Tests of the lab itself: its files, its verdicts on gateways that misbehave on purpose, its accounting.

mod accounting;
mod files;
mod helpers;
mod verdicts;
