//! The five stops of one operation, each with its artefact.
