//! The database of PromptYoSelf: the table `schedules`, or `unified_reminders` in newer versions.
//!
//! It is opened for reading only, so that a PromptYoSelf that runs on it goes on as if nobody looked.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde_json::{Value, json};

use crate::Failure;
use crate::http::escape;

/// How long to wait for a PromptYoSelf that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// What newer versions call the table; these have the older one beside it and do not look into it.
const NEWER: &str = "unified_reminders";
const OLDER: &str = "schedules";

/// What a database holds.
#[derive(Debug)]
pub(super) struct Found {
    /// The table that was read.
    pub(super) table: &'static str,
    /// The active prompts, oldest first.
    pub(super) rows: Vec<Row>,
    /// How many are over or cancelled.
    pub(super) inactive: usize,
    /// How many are active and for no agent: those that newer versions show on their web page only.
    pub(super) without_agent: usize,
    /// How many active prompts a newer version has in its older table.
    pub(super) older: usize,
}

/// An active prompt.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) agent: String,
    pub(super) prompt: String,
    /// `once`, `cron` or `interval`.
    pub(super) kind: String,
    pub(super) value: String,
    /// When it is due next, as the server reads it; as it is written if that is no time.
    pub(super) next: String,
    /// As the server takes it, or why it cannot be put so.
    pub(super) wish: Result<Value, String>,
}

/// Reads `file`.
pub(super) fn read(file: &Path) -> Result<Found, Failure> {
    let shown = file.display();
    if !file.is_file() {
        return Err(Failure::failed(format!("there is no file '{shown}'"))
            .hint("PromptYoSelf's variable PROMPTYOSELF_DB says where its database is"));
    }
    let unreadable = |error: rusqlite::Error| {
        Failure::failed(format!("'{shown}' cannot be read: {error}"))
            .hint("it has to be the SQLite database of PromptYoSelf, and readable for you")
    };
    let connection = open(file).map_err(unreadable)?;
    let exists = |table: &str| {
        let query = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1)";
        connection.query_row(query, [table], |row| row.get::<_, bool>(0))
    };
    let (newer, older) = (exists(NEWER).map_err(unreadable)?, exists(OLDER).map_err(unreadable)?);
    // Whoever changed to a newer version without making a prompt with it has all of them in the older table.
    let newer = newer && (!older || count(&connection, NEWER, "1").map_err(unreadable)? > 0);
    let found = match (newer, older) {
        (true, older) => found_in(&connection, NEWER, "message", older),
        (false, true) => found_in(&connection, OLDER, "prompt_text", false),
        (false, false) => {
            return Err(Failure::failed(format!(
                "'{shown}' has neither a table '{OLDER}' nor '{NEWER}': it is no database of PromptYoSelf"
            )));
        }
    };
    found.map_err(unreadable)
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    connect(file, OpenFlags::empty()).or_else(|error| {
        // In write-ahead mode a reader, too, needs a file beside the database, which it may not make everywhere. If nobody
        // has the database open, nothing is missing in the file itself.
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let is_whole = std::fs::metadata(&log).map_or(true, |log| log.len() == 0);
        match (error.sqlite_error_code(), file.canonicalize()) {
            (Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly), Ok(path)) if is_whole => {
                let path = path.to_string_lossy().split('/').map(escape).collect::<Vec<_>>().join("/");
                connect(Path::new(&format!("file:{path}?immutable=1")), OpenFlags::SQLITE_OPEN_URI)
            }
            _ => Err(error),
        }
    })
}

fn connect(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // The first look at the file: whether it is a database, and may be read.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

/// How many rows of `table` are as `condition` says. Both are this program's own words.
fn count(connection: &Connection, table: &str, condition: &str) -> rusqlite::Result<usize> {
    let query = format!("SELECT count(*) FROM {table} WHERE {condition}");
    let count: i64 = connection.query_row(&query, [], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

fn found_in(
    connection: &Connection,
    table: &'static str,
    prompt: &str,
    has_older: bool,
) -> rusqlite::Result<Found> {
    // One state of the file, whatever is written meanwhile.
    let connection = connection.unchecked_transaction()?;
    let names_agent = "trim(coalesce(agent_id, '')) <> ''";
    let query = format!(
        "SELECT id, agent_id, {prompt}, schedule_type, schedule_value, next_run, created_at, last_run, max_repetitions, \
         repetition_count FROM {table} WHERE active = 1 AND {names_agent} ORDER BY id"
    );
    let mut statement = connection.prepare(&query)?;
    let rows = statement.query_map([], |cells| {
        let text = |place| cells.get::<_, Cell>(place).map(text_of);
        let number = |place| cells.get::<_, Cell>(place).map(|cell| number_of(&cell));
        Ok(row(&Cells {
            table,
            id: cells.get(0)?,
            agent: text(1)?,
            prompt: text(2)?,
            kind: text(3)?,
            value: text(4)?,
            next: text(5)?,
            created: text(6)?,
            last_run: text(7)?,
            max_repetitions: number(8)?,
            repetitions: number(9)?,
        }))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    drop(statement);
    Ok(Found {
        table,
        rows,
        inactive: count(&connection, table, "active IS NOT 1")?,
        without_agent: count(&connection, table, &format!("active = 1 AND NOT {names_agent}"))?,
        older: if has_older { count(&connection, OLDER, "active = 1")? } else { 0 },
    })
}

/// A row as it stands in the table.
struct Cells {
    table: &'static str,
    id: i64,
    agent: String,
    prompt: String,
    kind: String,
    value: String,
    next: String,
    created: String,
    last_run: String,
    max_repetitions: Option<u32>,
    repetitions: Option<u32>,
}

fn text_of(cell: Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Text(text) => text,
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Blob(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

fn number_of(cell: &Cell) -> Option<u32> {
    match cell {
        Cell::Integer(number) => u32::try_from(*number).ok(),
        Cell::Text(text) => text.trim().parse().ok(),
        Cell::Null | Cell::Real(_) | Cell::Blob(_) => None,
    }
}

fn row(cells: &Cells) -> Row {
    let next = time(&cells.next);
    Row {
        id: cells.id,
        agent: cells.agent.trim().to_owned(),
        prompt: cells.prompt.clone(),
        kind: cells.kind.clone(),
        value: cells.value.clone(),
        next: next.map_or_else(|| cells.next.clone(), |next| next.to_string()),
        wish: wish(cells, next),
    }
}

/// What the server is asked to keep.
fn wish(cells: &Cells, next: Option<Timestamp>) -> Result<Value, String> {
    let next = next.ok_or_else(|| format!("its next due time '{}' is no time", cells.next))?;
    if cells.max_repetitions.is_some_and(|max| cells.repetitions.unwrap_or_default() >= max) {
        return Err("it was delivered as often as it should be".to_owned());
    }
    let mut wish = json!({
        // A row's number is given anew once the last row is deleted; the moment in which it was made is its own.
        "source": format!("promptyoself/{}/{}/{}", cells.table, cells.id, cells.created),
        "target": {"kind": "letta", "to": cells.agent.trim()},
        "message": cells.prompt,
        "value": cells.value,
        "next": next,
        "delivered": cells.repetitions.unwrap_or_default(),
        // As PromptYoSelf's own tools make them: a prompt that cannot be delivered is one prompt, not one per due time.
        "overlap": "skip",
    });
    match cells.kind.as_str() {
        "once" => wish["at"] = json!(next),
        "cron" => wish["cron"] = json!(cells.value),
        "interval" => {
            let every = cells.value.trim();
            let is_bare = every.bytes().all(|byte| byte.is_ascii_digit());
            wish["every"] = json!(if is_bare { format!("{every}s") } else { every.to_owned() });
        }
        other => return Err(format!("its type '{other}' is none of once, cron and interval")),
    }
    if let Some(max) = cells.max_repetitions {
        wish["max_repetitions"] = json!(max);
    }
    if let Some(last_run) = time(&cells.last_run) {
        wish["last_run"] = json!(last_run);
    }
    Ok(wish)
}

/// A point in time as PromptYoSelf writes it: `2025-01-02 09:00:00.000000`, which is UTC.
fn time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let at: DateTime = text.parse().ok()?;
        at.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp())
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use expect_test::{Expect, expect};

    use super::*;

    const COLUMNS: &str = "schedule_type VARCHAR, schedule_value VARCHAR, next_run DATETIME NOT NULL, active BOOLEAN, \
                           created_at DATETIME, last_run DATETIME, max_repetitions INTEGER, repetition_count INTEGER";

    /// With what means something else in a URI.
    const FILE: &str = "prompt?yo#self%41 ü.db";

    /// A database that PromptYoSelf could have written, in write-ahead mode and still open.
    struct Database {
        dir: tempfile::TempDir,
        connection: Connection,
    }

    impl Database {
        fn new(statements: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let connection = Connection::open(dir.path().join(FILE)).unwrap();
            connection.execute_batch("PRAGMA journal_mode = WAL").unwrap();
            connection.execute_batch(statements).unwrap();
            Self { dir, connection }
        }

        fn file(&self) -> PathBuf {
            self.dir.path().join(FILE)
        }
    }

    fn older(rows: &str) -> String {
        let table = format!(
            "CREATE TABLE schedules (id INTEGER PRIMARY KEY, agent_id VARCHAR NOT NULL, prompt_text TEXT NOT NULL, {COLUMNS});"
        );
        table + rows
    }

    fn newer(rows: &str) -> String {
        let table = format!(
            "CREATE TABLE unified_reminders (id INTEGER PRIMARY KEY, agent_id VARCHAR(100), message TEXT NOT NULL, {COLUMNS}, \
             status VARCHAR(50), task_id INTEGER, user_id INTEGER);"
        );
        table + rows
    }

    fn check(database: &Database, expected: &Expect) {
        let Found { table, rows, inactive, without_agent, older } = read(&database.file()).unwrap();
        let mut seen =
            format!("{table}: {inactive} inactive, {without_agent} without agent, {older} older\n");
        for row in rows {
            let wish = row.wish.map_or_else(|why| why, |wish| wish.to_string());
            let line = format!("{} {} {} {}: {wish}\n", row.id, row.agent, row.kind, row.next);
            seen.push_str(&line);
        }
        expected.assert_eq(&seen);
    }

    #[test]
    fn active_prompts_are_read_while_promptyoself_has_them_open() {
        let rows = "INSERT INTO schedules VALUES
            (1, 'a1', 'Once', 'once', '2025-12-25T10:00:00Z', '2025-12-25 10:00:00.000000', 1,
                '2025-01-01 09:00:00.000001', NULL, NULL, 0),
            (2, 'a1', 'Daily', 'cron', '0 9 * * *', '2025-01-02 09:00:00', 1, '2025-01-01 09:00:00.000002',
                '2025-01-01 09:00:03.5', NULL, 7),
            (3, ' a2 ', 'Often', 'interval', '45', '2025-01-02 09:00:00.25', 1, '2025-01-01 09:00:00.000003', NULL, 10, 3),
            (4, 'a2', 'Over', 'interval', '5m', '2025-01-02 09:00:00', 0, '2025-01-01 09:00:00.000004', NULL, 1, 1),
            (5, 'a2', 'Nothing left', 'interval', '5m', '2025-01-02 09:00:00', 1, NULL, NULL, 1, 1),
            (6, 'a2', 'When?', 'interval', '5m', 'soon', 1, NULL, NULL, NULL, NULL),
            (7, 'a2', 'How?', 'simple', NULL, '2025-01-02 09:00:00', 1, NULL, NULL, NULL, NULL),
            (8, 'a2', 'Undecided', 'once', '', '2025-01-02 09:00:00', NULL, NULL, NULL, NULL, NULL);";
        let database = Database::new(&older(rows));
        check(
            &database,
            &expect![[r#"
            schedules: 2 inactive, 0 without agent, 0 older
            1 a1 once 2025-12-25T10:00:00Z: {"source":"promptyoself/schedules/1/2025-01-01 09:00:00.000001","target":{"kind":"letta","to":"a1"},"message":"Once","value":"2025-12-25T10:00:00Z","next":"2025-12-25T10:00:00Z","delivered":0,"overlap":"skip","at":"2025-12-25T10:00:00Z"}
            2 a1 cron 2025-01-02T09:00:00Z: {"source":"promptyoself/schedules/2/2025-01-01 09:00:00.000002","target":{"kind":"letta","to":"a1"},"message":"Daily","value":"0 9 * * *","next":"2025-01-02T09:00:00Z","delivered":7,"overlap":"skip","cron":"0 9 * * *","last_run":"2025-01-01T09:00:03.5Z"}
            3 a2 interval 2025-01-02T09:00:00.25Z: {"source":"promptyoself/schedules/3/2025-01-01 09:00:00.000003","target":{"kind":"letta","to":"a2"},"message":"Often","value":"45","next":"2025-01-02T09:00:00.25Z","delivered":3,"overlap":"skip","every":"45s","max_repetitions":10}
            5 a2 interval 2025-01-02T09:00:00Z: it was delivered as often as it should be
            6 a2 interval soon: its next due time 'soon' is no time
            7 a2 simple 2025-01-02T09:00:00Z: its type 'simple' is none of once, cron and interval
        "#]],
        );
        // Whoever has it open goes on writing.
        database.connection.execute("UPDATE schedules SET active = 0", []).unwrap();
        assert_eq!(read(&database.file()).unwrap().inactive, 8);
    }

    #[test]
    fn newer_versions_have_another_table_and_reminders_for_no_agent() {
        let rows = "INSERT INTO unified_reminders VALUES
            (1, 'a1', 'Hourly', 'interval', '1h', '2025-01-02 09:00:00.000000', 1, '2025-01-01 09:00:00.000000', NULL, NULL, 0,
                'pending', NULL, NULL),
            (2, NULL, 'On the web', 'simple', NULL, '2025-01-02 09:00:00.000000', 1, '2025-01-01 09:00:00.000000', NULL, NULL, 0,
                'pending', 5, 1);
            INSERT INTO schedules VALUES (1, 'a1', 'Left', 'cron', '@daily', '2025-01-02 00:00:00', 1, NULL, NULL, NULL, 0);";
        check(
            &Database::new(&(older("") + &newer(rows))),
            &expect![[r#"
            unified_reminders: 0 inactive, 1 without agent, 1 older
            1 a1 interval 2025-01-02T09:00:00Z: {"source":"promptyoself/unified_reminders/1/2025-01-01 09:00:00.000000","target":{"kind":"letta","to":"a1"},"message":"Hourly","value":"1h","next":"2025-01-02T09:00:00Z","delivered":0,"overlap":"skip","every":"1h"}
        "#]],
        );
    }

    #[test]
    fn a_newer_version_that_made_nothing_yet_has_all_in_the_older_table() {
        let rows = "INSERT INTO schedules VALUES (1, 'a1', 'Kept', 'cron', '@daily', '2025-01-02 00:00:00', 1, NULL, NULL, NULL, 0);";
        check(
            &Database::new(&(newer("") + &older(rows))),
            &expect![[r#"
            schedules: 0 inactive, 0 without agent, 0 older
            1 a1 cron 2025-01-02T00:00:00Z: {"source":"promptyoself/schedules/1/","target":{"kind":"letta","to":"a1"},"message":"Kept","value":"@daily","next":"2025-01-02T00:00:00Z","delivered":0,"overlap":"skip","cron":"@daily"}
        "#]],
        );
    }

    #[test]
    fn what_is_no_database_of_promptyoself_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let failure = |file: &Path| {
            let text = read(file).unwrap_err().to_string();
            text.replace(&dir.path().display().to_string(), "DIR")
        };
        assert_eq!(failure(&dir.path().join("none.db")), "there is no file 'DIR/none.db'");
        let text = dir.path().join("text.db");
        std::fs::write(&text, "This is a text that is long enough to be something. ".repeat(20)).unwrap();
        assert_eq!(failure(&text), "'DIR/text.db' cannot be read: file is not a database");
        let other = Database::new("CREATE TABLE tasks (id INTEGER)");
        let text = read(&other.file()).unwrap_err().to_string();
        assert!(text.ends_with(
            "has neither a table 'schedules' nor 'unified_reminders': it is no database of PromptYoSelf"
        ));
        // Nothing is made where there was nothing.
        assert!(!dir.path().join("none.db").exists());
    }

    #[test]
    fn a_database_that_nobody_has_open_is_read_where_nothing_may_be_written() {
        use std::os::unix::fs::PermissionsExt as _;
        let Database { dir, connection } = Database::new(&older(
            "INSERT INTO schedules VALUES (1, 'a1', 'p', 'cron', '@daily', '2025-01-02 00:00:00', 1, NULL, NULL, NULL, 0);",
        ));
        drop(connection);
        let permit =
            |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        permit(0o500);
        let found = read(&dir.path().join(FILE));
        permit(0o700);
        assert_eq!(found.unwrap().rows.len(), 1);
    }
}
