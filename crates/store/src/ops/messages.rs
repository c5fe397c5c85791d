//! Durable messages and how far they have come.

use woodward_core::{Actor, MessageId, TaskId, Timestamp};

use crate::conn::{Conn, Op, Param, Row, to_json};
use crate::error::{Result, StoreError};
use crate::ops::tasks;
use crate::records::{Delivery, MESSAGE_BYTES_MAX, Message, NewMessage, TaskClaim};
use crate::wake::Wakes;

pub(crate) fn check(message: &NewMessage) -> Result<()> {
    if message.body.len() > MESSAGE_BYTES_MAX {
        return Err(StoreError::TooLarge {
            what: "the message",
            size: message.body.len(),
            max: MESSAGE_BYTES_MAX,
        });
    }
    // PostgreSQL has no NUL in texts, and no agent wants one.
    if message.body.contains('\0') {
        return Err(StoreError::Database(
            "a message can't contain a NUL character".into(),
        ));
    }
    Ok(())
}

pub(crate) async fn insert<C: Conn>(
    conn: &mut C,
    task: TaskId,
    actor: &Actor,
    at: Timestamp,
    message: &NewMessage,
) -> Result<()> {
    conn.execute(
        "INSERT INTO messages (id, task, actor, delivery, created_at, body)
         VALUES ($1, $2, $3, 'stored', $4, $5) ON CONFLICT (id) DO NOTHING",
        &[
            message.id.into(),
            task.into(),
            (&to_json(actor)).into(),
            at.into(),
            (&message.body).into(),
        ],
    )
    .await
    .map(drop)
}

fn read(row: &Row) -> Result<Message> {
    Ok(Message {
        id: MessageId::new(row.id(0)?),
        task: TaskId::new(row.id(1)?),
        actor: row.json(2, "actor")?,
        delivery: delivery(row.text(3)?)?,
        created_at: Timestamp(row.int(4)?),
        body: row.text(5)?.to_owned(),
    })
}

fn delivery(word: &str) -> Result<Delivery> {
    [Delivery::Stored, Delivery::Injected, Delivery::Accepted]
        .into_iter()
        .find(|delivery| delivery.as_str() == word)
        .ok_or_else(|| StoreError::corrupt("message", format!("unknown delivery `{word}`")))
}

/// Stores a message for a task. The same id again changes nothing.
#[derive(Debug)]
pub(crate) struct PostMessage {
    pub(crate) task: TaskId,
    pub(crate) actor: Actor,
    pub(crate) at: Timestamp,
    pub(crate) message: NewMessage,
}

impl Op for PostMessage {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let known = conn
            .query("SELECT id FROM tasks WHERE id = $1", &[self.task.into()])
            .await?;
        if known.is_empty() {
            return Err(tasks::not_found(self.task));
        }
        insert(conn, self.task, &self.actor, self.at, &self.message).await
    }
}

/// A task's messages, oldest first.
#[derive(Debug)]
pub(crate) struct LoadMessages(pub(crate) TaskId);

impl Op for LoadMessages {
    type Out = Vec<Message>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Message>> {
        let rows = conn
            .query(
                "SELECT id, task, actor, delivery, created_at, body FROM messages
                 WHERE task = $1 ORDER BY created_at, id",
                &[self.0.into()],
            )
            .await?;
        rows.iter().map(read).collect()
    }
}

/// Records how far a message has come; it never goes back.
#[derive(Debug)]
pub(crate) struct RecordDelivery {
    pub(crate) claim: TaskClaim,
    pub(crate) message: MessageId,
    pub(crate) delivery: Delivery,
}

impl Op for RecordDelivery {
    type Out = ();

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        tasks::require_claim(conn, self.claim).await?;
        // `injected` may follow only `stored`; `accepted` may follow anything.
        let from_at_most = match self.delivery {
            Delivery::Stored | Delivery::Injected => Delivery::Stored,
            Delivery::Accepted => Delivery::Injected,
        };
        let changed = conn
            .execute(
                "UPDATE messages SET delivery = $1
                 WHERE id = $2 AND task = $3 AND delivery IN ('stored', $4)",
                &[
                    Param::Text(self.delivery.as_str()),
                    self.message.into(),
                    self.claim.task.into(),
                    Param::Text(from_at_most.as_str()),
                ],
            )
            .await?;
        if changed > 0 {
            return Ok(());
        }
        let known = conn
            .query(
                "SELECT id FROM messages WHERE id = $1 AND task = $2",
                &[self.message.into(), self.claim.task.into()],
            )
            .await?;
        match known.first() {
            Some(_) => Ok(()),
            None => Err(StoreError::NotFound {
                what: format!("message {}", self.message),
            }),
        }
    }
}
