//! WebSocket frames, byte by byte, against what servers and clients have to make of them.

mod foreign_frames;
mod frames;
