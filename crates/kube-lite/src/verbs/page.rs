//! How many objects a page of a list is asked for, so that it has about as many bytes whatever the objects are.
//!
//! API servers compress an answer only if it has more than 128 kB, so a page of few small objects would cost as much on
//! the link as several times as many of them.

use super::request::Content;

/// The bytes of a page, unpacked: small enough that the server does not hold it for long, large enough for few requests and
/// to be compressed.
const PAGE: usize = 1 << 20;
/// The most objects in a page, however small they are: a server, or what reads the list, may be slower than the link.
const MOST: usize = 1000;
/// What an object is taken to have before one of the list has come, whole and as metadata alone.
const USUAL: usize = 3 << 10;
const USUAL_METADATA: usize = 1 << 10;

/// The sizes of a list's items so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    items: usize,
    bytes: usize,
}

impl Sizes {
    /// An item of so many bytes has come.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.items += 1;
        self.bytes += bytes;
    }

    /// How many objects the next page is asked for, if pages are halved so often because the link is slow.
    pub(super) fn page(self, content: Content, halved: u32) -> usize {
        let usual = match content {
            Content::Full => USUAL,
            Content::Metadata => USUAL_METADATA,
        };
        let size = self.bytes.checked_div(self.items).unwrap_or(usual).max(1);
        ((PAGE >> halved) / size).min(MOST >> halved).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// API servers compress an answer that has more bytes.
    const COMPRESSED: usize = 128 << 10;

    fn sizes(items: &[usize]) -> Sizes {
        let mut sizes = Sizes::default();
        for &bytes in items {
            sizes.add(bytes);
        }
        sizes
    }

    #[test]
    fn a_page_has_about_as_many_bytes_whatever_the_objects_are() {
        for (items, content, halved, expected) in [
            // Nothing is known of them.
            (&[][..], Content::Full, 2, 85),
            (&[], Content::Full, 0, 341),
            (&[], Content::Metadata, 2, 250),
            (&[], Content::Metadata, 0, 1000),
            (&[4096], Content::Full, 2, 64),
            (&[4096, 4096], Content::Full, 0, 256),
            // What has come counts, not what is usual.
            (&[2000; 9], Content::Metadata, 2, 131),
            (&[60_000], Content::Full, 2, 4),
            (&[1000, 61_000], Content::Full, 0, 33),
            // Never none, and never endless ones.
            (&[3 << 20], Content::Full, 0, 1),
            (&[4096], Content::Full, 9, 1),
            (&[2], Content::Metadata, 0, 1000),
            (&[0], Content::Full, 0, 1000),
        ] {
            assert_eq!(
                sizes(items).page(content, halved),
                expected,
                "{items:?} {content:?} {halved}"
            );
        }
    }

    #[test]
    fn a_page_is_large_enough_to_be_compressed_until_one_was_too_large_for_the_link() {
        for size in [600, 1000, 4096, 30_000, 200_000] {
            for halved in 0..=2 {
                let objects = sizes(&[size]).page(Content::Full, halved);
                assert!(
                    objects * size > COMPRESSED,
                    "{objects} of {size} bytes, halved {halved} times"
                );
            }
        }
    }
}
