//! Limits: documents made to be expensive are refused or cheap.
