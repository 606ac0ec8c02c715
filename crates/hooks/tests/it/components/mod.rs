//! Components as users write them, each with what goes in and what has to come out, and hostile ones. They are written in
//! text format, with what a compiler would add around them ([`guest`]), and are data: `cases.txt`, `hostile.txt`.

mod cases;
mod decisions;
mod guest;
mod hostile;
mod languages;
mod loading;
mod requests;
