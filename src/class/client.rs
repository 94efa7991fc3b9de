//! The link to a room over HTTP, for participants and presenters. Each call sends one request, and limits the time and the size of the
//! response.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::StatusCode;

use super::board::Board;
use super::link::{InstructorLink, ParticipantLink, RoomError};
use super::record::{ClassState, InstructorRequest, Participant, RecordError};
use crate::sanitize;

/// The time limit of a whole request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);
/// The time limit of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// The longest response that is read, in bytes.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// A link to a room over HTTP.
pub struct Http {
    agent: Agent,
    /// The address without the code: `http://host:port`.
    base: String,
    code: String,
}

impl Http {
    /// Returns a client for an address of the form `HOST:PORT/CODE`. It does not connect yet.
    ///
    /// # Errors
    /// If the address has no host or no code.
    pub fn new(address: &str) -> Result<Self, String> {
        let (host, code) = address
            .trim_end_matches('/')
            .split_once('/')
            .unwrap_or((address, ""));
        let is_plain = code.chars().all(|letter| letter.is_ascii_alphanumeric());
        if host.is_empty() || code.is_empty() || !is_plain {
            return Err(format!(
                "http://{} has no room code; write http://HOST:PORT/CODE \
                 as shown on the instructor's board",
                sanitize::bounded(address, 80)
            ));
        }
        let config = Agent::config_builder()
            .timeout_global(Some(REQUEST_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            // Rooms are on the local network, which a web proxy cannot reach.
            .proxy(None)
            .max_redirects(0)
            .user_agent(concat!("perflings/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: config.new_agent(),
            base: format!("http://{host}"),
            code: code.to_owned(),
        })
    }

    /// Returns the error of a request that got no response.
    fn unreached(&self, error: ureq::Error) -> RoomError {
        let host = self.base.trim_start_matches("http://");
        let why = match error {
            ureq::Error::Timeout(_) => "does not answer".to_owned(),
            ureq::Error::HostNotFound => "has an unknown host name".to_owned(),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                "refuses connections (is the room open?)".to_owned()
            }
            error => format!(
                "cannot be reached: {}",
                sanitize::bounded(&error.to_string(), 120)
            ),
        };
        RoomError::Later(format!("{} {why}", sanitize::bounded(host, 60)))
    }

    /// Posts a value in JSON, and reads the response. A refusal becomes an error with the reason that the room gives.
    fn send<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, RoomError> {
        let body = serde_json::to_vec(body).map_err(|error| RoomError::Never(error.to_string()))?;
        let mut response = self
            .agent
            .post(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.code))
            .send(&body)
            .map_err(|error| self.unreached(error))?;
        let status = response.status();
        let content = response
            .body_mut()
            .with_config()
            .limit(MOST_BYTES)
            .read_to_vec()
            .map_err(|error| self.unreached(error))?;
        if status == StatusCode::OK {
            return serde_json::from_slice(&content).map_err(|_| {
                RoomError::Later(format!("{} answers, but is not a room", self.base))
            });
        }
        let reason = sanitize::bounded(String::from_utf8_lossy(&content).trim(), 200);
        Err(match status {
            StatusCode::FORBIDDEN | StatusCode::UPGRADE_REQUIRED => RoomError::Never(reason),
            StatusCode::NOT_FOUND => RoomError::Never(format!("{} is not a room", self.base)),
            _ => RoomError::Later(reason),
        })
    }
}

impl InstructorLink for Http {
    fn board(&mut self) -> Result<Board, RoomError> {
        self.send("/board", &())
    }

    fn order(&mut self, order: &InstructorRequest) -> Result<(), RoomError> {
        self.send::<Board>("/order", order).map(drop)
    }
}

impl ParticipantLink for Http {
    fn share(&mut self, me: &Participant) -> Result<ClassState, RoomError> {
        let class: ClassState = self.send("/join", me)?;
        if class.version != super::record::VERSION {
            return Err(RoomError::Never(format!(
                "the room {}",
                RecordError::Version(class.version)
            )));
        }
        Ok(class)
    }
}
