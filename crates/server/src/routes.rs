//! The routes: one line each, one wish each.

use std::path::PathBuf;
use std::time::Duration;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::Uri;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use woodward_api::{
    AnswerState, Approve, AskSecret, Asked, BlameView, Changed, ChannelTest, CloseTrial, Code,
    CommentView, ConflictsView, CostView, CreateTasks, CreatedTask, Diagnosis, DiffText, Done,
    EnvironmentRules, FreezeQueue, GateRules, GatesRun, HandOver, Health, LogText, MergePlan,
    MergeTask, NewComment, NewQuestion, Note, NoticeView, NotifyView, OpenProject, OpenTrial,
    OverlapCheck, Problem, ProjectView, QueueView, ReactionEntry, ReactionTest, ReactionView,
    RunGates, RunPlace, Secret, StatusFilter, StatusView, TaskDetail, TaskDraft, TestChannels,
    Text, Timeline, TrialLeftovers, TrialWorktree, Undo,
};
use woodward_core::{EventSeq, MessageId, RunId, Timestamp};
use woodward_engine::engine::Engine;
use woodward_engine::service::{LogWish, TaskRef};

use crate::answer::{Answer, Refused, answer};
use crate::events;

/// A prompt may have megabytes.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// All routes.
pub(crate) fn all(engine: Engine) -> Router {
    let task = Router::new()
        .route("/", get(show))
        .route("/timeline", get(timeline))
        .route("/diff", get(diff))
        .route("/logs", get(logs))
        .route("/terminal", get(place).post(take_over))
        .route("/comments", get(comments))
        .route("/reactions", get(reaction_test))
        .route("/{verb}", post(act));
    let api = Router::new()
        .route("/shutdown", post(shutdown))
        .route("/projects", post(open_project))
        .route("/projects/trial", post(open_trial))
        .route("/projects/trial/close", post(close_trial))
        .route("/status", get(status))
        .route("/tasks", post(create))
        .nest("/tasks/{task}", task)
        .route("/environment", get(environment_rules).post(hand_over))
        .route("/undo", post(undo))
        .route("/changes", get(changes))
        .route("/doctor", get(doctor))
        .route("/cost", get(cost))
        .route("/queue", get(queue))
        .route("/queue/freeze", post(freeze))
        .route("/queue/plan", get(plan_merge))
        .route("/create/check", post(check_create))
        .route("/conflicts", get(conflicts))
        .route("/conflicts/check", post(check_overlap))
        .route("/blame", get(blame))
        .route("/gates", get(gates))
        .route("/gates/run", post(run_gates))
        .route("/notify", get(channels))
        .route("/notify/log", get(notices))
        .route("/notify/test", post(test_channels))
        .route("/events", post(events::take))
        .route("/reactions", get(reactions))
        .route("/reactions/log", get(reaction_log))
        .route("/reactions/secret", post(secret))
        .route("/runs/{run}/questions", post(ask))
        .route("/runs/{run}/questions/{question}", get(answer_to));
    Router::new()
        .route("/healthz", get(health))
        .route("/debug/database", get(database_activity))
        .nest("/api/v1", api)
        .fallback(nothing_here)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(engine)
}

/// How many operations the database has performed, for measurements.
#[derive(Debug, Serialize)]
struct DatabaseActivity {
    reads: u64,
    writes: u64,
    renewals: u64,
}

async fn database_activity(State(engine): State<Engine>) -> Json<DatabaseActivity> {
    let activity = engine.activity();
    Json(DatabaseActivity {
        reads: activity.reads,
        writes: activity.writes,
        renewals: activity.renewals,
    })
}

async fn nothing_here(uri: Uri) -> Refused {
    Problem::new(
        Code::NotFound,
        format!("there is nothing at {}", uri.path()),
    )
    .into()
}

/// What a request says besides its path and body.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asking {
    root: PathBuf,
    cwd: Option<PathBuf>,
    all: bool,
    brief: bool,
    stat: bool,
    working: bool,
    since_approved: bool,
    fix: bool,
    run: Option<usize>,
    gate: Option<String>,
    setup: Option<usize>,
    task: Option<String>,
    trigger: String,
    text: String,
    file: PathBuf,
    line: Option<u32>,
    limit: u32,
    offset: u64,
    after: u64,
    wait_ms: u64,
}

impl Asking {
    fn task<'a>(&'a self, name: &'a str) -> TaskRef<'a> {
        TaskRef {
            root: &self.root,
            name,
            cwd: self.cwd.as_deref(),
        }
    }

    const fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms)
    }
}

type Wish = Result<Query<Asking>, QueryRejection>;
type Body<T> = Result<Json<T>, JsonRejection>;

async fn health(State(engine): State<Engine>) -> Answer<Health> {
    answer(Ok(engine.health()))
}

async fn shutdown(State(engine): State<Engine>) -> Answer<Health> {
    engine.begin_stop();
    answer(Ok(engine.health()))
}

async fn open_project(
    State(engine): State<Engine>,
    body: Body<OpenProject>,
) -> Answer<ProjectView> {
    let Json(request) = body?;
    answer(engine.open_project(&request).await)
}

async fn open_trial(State(engine): State<Engine>, body: Body<OpenTrial>) -> Answer<TrialWorktree> {
    let Json(request) = body?;
    answer(engine.open_trial(&request).await)
}

async fn close_trial(
    State(engine): State<Engine>,
    body: Body<CloseTrial>,
) -> Answer<TrialLeftovers> {
    let Json(request) = body?;
    answer(engine.close_trial(&request).await)
}

async fn status(State(engine): State<Engine>, asking: Wish) -> Answer<StatusView> {
    let asking = asking?;
    let filter = StatusFilter {
        finished: asking.all,
        limit: (asking.limit > 0).then_some(asking.limit),
    };
    answer(engine.status(&asking.root, filter).await)
}

async fn queue(State(engine): State<Engine>, asking: Wish) -> Answer<QueueView> {
    answer(engine.queue(&asking?.root).await)
}

async fn freeze(
    State(engine): State<Engine>,
    asking: Wish,
    body: Body<FreezeQueue>,
) -> Answer<QueueView> {
    let (asking, Json(wish)) = (asking?, body?);
    to_the_end(async move { engine.queue_freeze(&asking.root, wish).await }).await
}

async fn plan_merge(State(engine): State<Engine>, asking: Wish) -> Answer<MergePlan> {
    let asking = asking?;
    let names = asking.task.as_deref().unwrap_or_default().split(',');
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let cwd = asking.cwd.as_deref();
    answer(engine.plan_merge(&asking.root, cwd, &names).await)
}

async fn cost(State(engine): State<Engine>, asking: Wish) -> Answer<CostView> {
    let asking = asking?;
    let since = Timestamp(i64::try_from(asking.after).unwrap_or(i64::MAX));
    answer(engine.cost(&asking.root, since).await)
}

async fn conflicts(State(engine): State<Engine>, asking: Wish) -> Answer<ConflictsView> {
    let asking = asking?;
    answer(engine.conflicts(&asking.root).await)
}

async fn check_create(
    State(engine): State<Engine>,
    asking: Wish,
    body: Body<CreateTasks>,
) -> Answer<Vec<TaskDraft>> {
    let Json(tasks) = body?;
    answer(engine.check_create(&asking?.root, tasks).await)
}

async fn check_overlap(
    State(engine): State<Engine>,
    asking: Wish,
    body: Body<CreateTasks>,
) -> Answer<OverlapCheck> {
    let Json(tasks) = body?;
    answer(engine.check_overlap(&asking?.root, tasks).await)
}

async fn blame(State(engine): State<Engine>, asking: Wish) -> Answer<BlameView> {
    let asking = asking?;
    answer(engine.blame(&asking.root, &asking.file, asking.line).await)
}

async fn gates(State(engine): State<Engine>, asking: Wish) -> Answer<GateRules> {
    let asking = asking?;
    answer(engine.gates(&asking.root).await)
}

async fn run_gates(
    State(engine): State<Engine>,
    asking: Wish,
    body: Body<RunGates>,
) -> Answer<GatesRun> {
    let Json(wish) = body?;
    let asking = asking?;
    to_the_end(async move { engine.run_gates(&asking.root, wish).await }).await
}

async fn create(
    State(engine): State<Engine>,
    asking: Wish,
    body: Body<CreateTasks>,
) -> Answer<Vec<CreatedTask>> {
    let Json(tasks) = body?;
    let asking = asking?;
    to_the_end(async move { engine.create(&asking.root, tasks).await }).await
}

async fn environment_rules(State(engine): State<Engine>, asking: Wish) -> Answer<EnvironmentRules> {
    answer(engine.environment_rules(&asking?.root).await)
}

async fn hand_over(
    State(engine): State<Engine>,
    asking: Wish,
    body: Body<HandOver>,
) -> Answer<EnvironmentRules> {
    let Json(wish) = body?;
    answer(engine.hand_over(&asking?.root, wish).await)
}

async fn show(
    State(engine): State<Engine>,
    Path(task): Path<String>,
    asking: Wish,
) -> Answer<TaskDetail> {
    let asking = asking?;
    answer(engine.show(&asking.task(&task), asking.brief).await)
}

async fn timeline(
    State(engine): State<Engine>,
    Path(task): Path<String>,
    asking: Wish,
) -> Answer<Timeline> {
    answer(engine.timeline(&asking?.task(&task)).await)
}

async fn diff(
    State(engine): State<Engine>,
    Path(task): Path<String>,
    asking: Wish,
) -> Answer<DiffText> {
    let asking = asking?;
    if asking.since_approved {
        let task = asking.task(&task);
        return answer(engine.diff_since_approved(&task, asking.stat).await);
    }
    answer(
        engine
            .diff(&asking.task(&task), asking.stat, asking.working)
            .await,
    )
}

async fn logs(
    State(engine): State<Engine>,
    Path(task): Path<String>,
    asking: Wish,
) -> Answer<LogText> {
    let asking = asking?;
    let wish = LogWish {
        run: asking.run,
        gate: asking.gate.clone(),
        setup: asking.setup,
        offset: asking.offset,
        wait: asking.wait(),
    };
    answer(engine.logs(&asking.task(&task), &wish).await)
}

async fn place(
    State(engine): State<Engine>,
    Path(task): Path<String>,
    asking: Wish,
) -> Answer<RunPlace> {
    answer(engine.place(&asking?.task(&task)).await)
}

async fn take_over(
    State(engine): State<Engine>,
    Path(task): Path<String>,
    asking: Wish,
) -> Answer<RunPlace> {
    let asking = asking?;
    to_the_end(async move { engine.take_over(&asking.task(&task)).await }).await
}

async fn act(
    State(engine): State<Engine>,
    Path((task, verb)): Path<(String, String)>,
    asking: Wish,
    body: Body<serde_json::Value>,
) -> Answer<Done> {
    let asking = asking?;
    let Json(body) = body?;
    to_the_end(async move {
        let task = asking.task(&task);
        match verb.as_str() {
            "prompt" => engine.prompt(&task, read::<Text>(body)?).await,
            "answer" => engine.answer(&task, read(body)?).await,
            "approve" => engine.approve(&task, read::<Approve>(body)?).await,
            "reject" => engine.reject(&task, read::<Text>(body)?).await,
            "comment" => engine.comment(&task, read::<NewComment>(body)?).await,
            "embedded" => engine.decide_embedded(&task, read(body)?).await,
            "merge" => engine.merge(&task, read::<MergeTask>(body)?).await,
            "hold" => engine.queue_hold(&task, read::<Note>(body)?.reason).await,
            "release" => engine.queue_release(&task).await,
            "bump" => engine.queue_bump(&task).await,
            "drop" => engine.queue_drop(&task, read::<Note>(body)?.reason).await,
            "cancel" => engine.cancel(&task, read::<Note>(body)?.reason).await,
            "pause" => engine.pause(&task, read::<Note>(body)?.reason).await,
            "resume" => engine.resume(&task, read(body)?).await,
            "retry" => engine.retry(&task).await,
            "remove" => engine.remove(&task).await,
            other => Err(Problem::new(
                Code::NotFound,
                format!("nothing can be done by the name of `{other}`"),
            )),
        }
    })
    .await
}

/// Does a deed to its end, also when the one who asked for it is gone meanwhile: half of one would be
/// left otherwise.
async fn to_the_end<T: Serialize + Send + 'static>(
    deed: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Answer<T> {
    let done = tokio::spawn(deed).await;
    answer(done.unwrap_or_else(|lost| Err(Problem::new(Code::Internal, lost.to_string()))))
}

fn read<T: serde::de::DeserializeOwned>(body: serde_json::Value) -> Result<T, Problem> {
    serde_json::from_value(body)
        .map_err(|error| Problem::new(Code::Usage, format!("the request makes no sense: {error}")))
}

async fn comments(
    State(engine): State<Engine>,
    Path(task): Path<String>,
    asking: Wish,
) -> Answer<Vec<CommentView>> {
    answer(engine.comments(&asking?.task(&task)).await)
}

async fn reactions(State(engine): State<Engine>, asking: Wish) -> Answer<Vec<ReactionView>> {
    answer(engine.reactions(&asking?.root).await)
}

async fn reaction_test(
    State(engine): State<Engine>,
    Path(task): Path<String>,
    asking: Wish,
) -> Answer<ReactionTest> {
    let asking = asking?;
    let tried = engine
        .reaction_test(&asking.task(&task), &asking.trigger, &asking.text)
        .await;
    answer(tried)
}

async fn reaction_log(State(engine): State<Engine>, asking: Wish) -> Answer<Vec<ReactionEntry>> {
    let asking = asking?;
    let task = asking.task.as_deref().map(|task| asking.task(task));
    let log = engine
        .reaction_log(&asking.root, task.as_ref(), asking.limit)
        .await;
    answer(log)
}

async fn secret(State(engine): State<Engine>, body: Body<AskSecret>) -> Answer<Secret> {
    let Json(ask) = body?;
    answer(engine.secret(ask))
}

async fn undo(State(engine): State<Engine>, asking: Wish, body: Body<Undo>) -> Answer<Done> {
    let Json(undo) = body?;
    let asking = asking?;
    to_the_end(async move { engine.undo(&asking.root, &undo).await }).await
}

async fn changes(State(engine): State<Engine>, asking: Wish) -> Answer<Changed> {
    let asking = asking?;
    answer(engine.changes(EventSeq(asking.after), asking.wait()).await)
}

async fn doctor(State(engine): State<Engine>, asking: Wish) -> Answer<Diagnosis> {
    let asking = asking?;
    answer(engine.diagnose(&asking.root, asking.fix).await)
}

async fn channels(State(engine): State<Engine>, asking: Wish) -> Answer<NotifyView> {
    answer(engine.channels(&asking?.root).await)
}

async fn notices(State(engine): State<Engine>, asking: Wish) -> Answer<Vec<NoticeView>> {
    let asking = asking?;
    let limit = u32::try_from(asking.after).unwrap_or(u32::MAX);
    answer(engine.notices(&asking.root, limit).await)
}

async fn test_channels(
    State(engine): State<Engine>,
    asking: Wish,
    body: Body<TestChannels>,
) -> Answer<Vec<ChannelTest>> {
    let Json(wanted) = body?;
    let asking = asking?;
    let tested = engine.test_channels(&asking.root, wanted.channel.as_deref());
    answer(tested.await)
}

async fn ask(
    State(engine): State<Engine>,
    Path(run): Path<String>,
    body: Body<NewQuestion>,
) -> Answer<Asked> {
    let Json(question) = body?;
    answer(engine.ask(id::<RunId>(&run)?, question).await)
}

async fn answer_to(
    State(engine): State<Engine>,
    Path((run, question)): Path<(String, String)>,
    asking: Wish,
) -> Answer<AnswerState> {
    let (run, question) = (id::<RunId>(&run)?, id::<MessageId>(&question)?);
    answer(engine.answer_to(run, question, asking?.wait()).await)
}

fn id<T: std::str::FromStr>(text: &str) -> Result<T, Problem> {
    text.parse()
        .map_err(|_| Problem::new(Code::Usage, format!("`{text}` is no id")))
}
