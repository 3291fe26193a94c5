//! Server-sent events, as they come over the wire.

/// One event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub(crate) event: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// Cuts a stream of bytes into events.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_return: bool,
}

impl SseParser {
    /// Takes the next bytes, and gives the events that are complete with them. Events without data are left out.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.end_line(&String::from_utf8_lossy(&line)));
                }
                _ => {
                    self.after_return = false;
                    self.line.push(byte);
                }
            }
        }
        events
    }

    fn end_line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "event" => self.event.event = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            // `retry`, comments, and what is not known.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_the_bytes_are_cut() {
        let text = ": hello\r\n\r\nid: 7\nevent: entry\ndata: a\ndata:b\n\nretry: 5\n\ndata: ü\r\n\r\n";
        for size in 1..text.len() {
            let mut parser = SseParser::default();
            let events: Vec<_> = text.as_bytes().chunks(size).flat_map(|chunk| parser.push(chunk)).collect();
            let first =
                SseEvent { event: Some("entry".into()), id: Some("7".into()), data: "a\nb".to_owned() };
            let second = SseEvent { data: "ü".to_owned(), ..SseEvent::default() };
            assert_eq!(events, [first, second], "in pieces of {size}");
        }
    }
}
