//! Published events by topic, kept for a while, resumable.
