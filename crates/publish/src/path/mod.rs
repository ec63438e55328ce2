//! Paths into JSON, by the syntax of gjson and sjson.
