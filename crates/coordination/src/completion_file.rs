//! The file by which an orchestrator learns that a session is done (rule 6 of the A2AMCP contract).

use std::io;
use std::path::{Path, PathBuf};

use crate::Name;

/// Writes `COMPLETED` to `<directory>/<session>.status`, making the directory if there is none. A failure is logged and
/// changes no answer: the completion itself is in the journal.
pub(crate) async fn write(directory: PathBuf, session: &Name) {
    let file = directory.join(file_name(session));
    let shown = file.display().to_string();
    let written = tokio::task::spawn_blocking(move || write_now(&directory, &file)).await;
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(file = shown, %error, "the completion file was not written"),
        Err(error) => tracing::warn!(file = shown, %error, "the completion file was not written"),
    }
}

fn write_now(directory: &Path, file: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::write(file, "COMPLETED\n")
}

/// Every character outside `[A-Za-z0-9._-]` becomes `_`, and so does a leading dot.
fn file_name(session: &Name) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    let mut name: String =
        session.as_str().chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    name + ".status"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_name_cannot_lead_out_of_the_directory() {
        let of = |session| file_name(&Name::new(session).unwrap());
        assert_eq!(of("task-001"), "task-001.status");
        assert_eq!(of("../../etc/passwd"), "_._.._etc_passwd.status");
        assert_eq!(of(".hidden"), "_hidden.status");
        assert_eq!(of("tâche 1"), "t_che_1.status");
    }
}
