//! What the scripts say to wrong input; nothing half-written stays behind.
