//! Answers as JSON, refusals with the status that fits them.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use woodward_api::{Code, Envelope, Problem};

/// A refusal.
pub(crate) struct Refused(Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Self {
        Self(Problem::new(Code::Usage, rejection.body_text()))
    }
}

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Self {
        Self(Problem::new(Code::Usage, rejection.body_text()))
    }
}

const fn status(code: Code) -> StatusCode {
    match code {
        Code::Usage => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::WrongState | Code::GateFailed | Code::Conflict | Code::NeedsPerson => {
            StatusCode::CONFLICT
        }
        Code::Forbidden => StatusCode::UNAUTHORIZED,
        Code::Limit => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (status(self.0.code), Json(self.0)).into_response()
    }
}

/// An answer or a refusal.
pub(crate) type Answer<T> = Result<Json<Envelope<T>>, Refused>;

/// Wraps what the engine said.
pub(crate) fn answer<T: Serialize>(said: Result<T, Problem>) -> Answer<T> {
    Ok(Json(Envelope::new(said?)))
}
