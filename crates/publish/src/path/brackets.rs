//! Brackets and quotes of paths.

/// How long the text is that this bracket or quote begins, up to its end.
pub(super) fn balanced(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'"' => {
                index = end_of_string(bytes, index);
                if depth == 0 {
                    return (index + 1).min(bytes.len());
                }
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
        index += 1;
    }
    bytes.len()
}

/// Where the string ends that begins here.
pub(super) fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut index = start + 1;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'\\' => index += 1,
            b'"' => return index,
            _ => {}
        }
        index += 1;
    }
    bytes.len()
}
