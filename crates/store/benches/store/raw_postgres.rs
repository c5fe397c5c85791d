//! The raw limit on PostgreSQL: the same statements run by pgbench, prepared, with as many clients.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use woodward_core::ProjectId;
use woodward_store::raw_sql;
use woodward_testkit::postgres::PgServer;

#[derive(Debug)]
pub(crate) struct Bare {
    pgbench: PathBuf,
    url: String,
    script: tempfile::NamedTempFile,
}

impl Bare {
    pub(crate) fn new(server: &PgServer, url: &str, project: ProjectId) -> anyhow::Result<Self> {
        let script = tempfile::NamedTempFile::new()?;
        std::fs::write(script.path(), pair(&project.to_string()))?;
        Ok(Self {
            pgbench: server.bin("pgbench"),
            url: url.to_owned(),
            script,
        })
    }

    /// Runs for a slice; pairs and time.
    pub(crate) fn run(&self, clients: usize, slice: Duration) -> anyhow::Result<(u64, Duration)> {
        // pgbench counts in whole seconds.
        let seconds = slice.as_secs().max(1);
        let output = Command::new(&self.pgbench)
            .args(["-n", "-M", "prepared", "-j", "2"])
            .arg("-c")
            .arg(clients.to_string())
            .arg("-T")
            .arg(seconds.to_string())
            .arg("-f")
            .arg(self.script.path())
            .arg(&self.url)
            .output()
            .context("pgbench starts")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let failure = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "pgbench failed: {failure}");
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.split_whitespace().next())
                .with_context(|| format!("pgbench printed no `{name}`: {text}{failure}"))
        };
        let pairs: u64 = field("number of transactions actually processed:")?.parse()?;
        let tps: f64 = field("tps =")?.parse()?;
        ensure!(tps > 0.0, "pgbench did nothing: {text}{failure}");
        Ok((pairs, Duration::from_secs_f64(pairs as f64 / tps)))
    }
}

/// One claim and one completion, as pgbench reads them.
fn pair(project: &str) -> String {
    // pgbench can't look into the doc, so its pick also gives what the doc says.
    let pick = raw_sql::POSTGRES_PICK
        .replace("SELECT doc, fresh,", "SELECT epoch, version, doc, fresh,")
        .replace(
            "SELECT doc, now_ms() FROM",
            "SELECT id, epoch, version, doc, now_ms() AS now FROM",
        )
        .replace("$1", &format!("'{project}'::uuid"))
        .replace("$2", "1")
        .replace("$3", "1");
    let claim = write(raw_sql::POSTGRES_TAKE, project, 1);
    let hand_back = write(raw_sql::POSTGRES_DROP, project, 2);
    format!(
        "BEGIN;\n{pick} \\gset\n\
         \\set epoch1 :epoch + 1\n\\set version1 :version + 1\n\
         \\set epoch2 :epoch + 2\n\\set version2 :version + 2\n\
         {claim};\nCOMMIT;\n{hand_back};\n"
    )
}

/// The write statement with pgbench's variables in place of our parameters, the `step`-th since the
/// pick.
fn write(sql: &str, project: &str, step: u32) -> String {
    let before = |name: &str| match step {
        1 => format!(":{name}"),
        _ => format!(":{name}{}", step - 1),
    };
    let claiming = step == 1;
    let parameters = [
        format!(":epoch{step}"),
        format!(":version{step}"),
        format!("'{}'", if claiming { "preparing" } else { "queued" }),
        String::from(if claiming { "0" } else { "1" }),
        String::from(if claiming { "NULL" } else { "now_ms()" }),
        String::from("now_ms()"),
        if claiming {
            format!("'{project}'::uuid")
        } else {
            String::from("NULL")
        },
        String::from(":doc"),
        String::from("now_ms()"),
        String::from(":id"),
        before("epoch"),
        before("version"),
        String::from("gen_random_uuid()"),
        format!("'{project}'"),
        String::from("'handed_back'"),
        String::from("'6c62272e07bb014262b821756295c58d'"),
        String::from(":doc"),
        format!("ARRAY[concat(:id::text, '/', :version{step}::text, '/prepare_worktree')]"),
        format!("ARRAY[:epoch{step}]"),
        format!("ARRAY['{project}']"),
        String::from("ARRAY[:doc]"),
        String::from("concat('task/', :id::text)"),
        String::from("gen_random_uuid()"),
        String::from("60000"),
    ];
    let mut text = String::from(sql);
    // From the last, so that `$2` does not eat the head of `$21`.
    for (index, value) in parameters.iter().enumerate().rev() {
        text = text.replace(&format!("${}", index + 1), value);
    }
    text
}
