//! What a PublishedResource changes on the way: fields deleted, rewritten, or computed.
