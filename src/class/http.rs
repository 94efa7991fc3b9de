//! The part of HTTP/1.1 that a room needs: requests whose head and body are short and arrive soon, responses of known length, and a
//! stream of events. `httparse` parses the head of a request.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::record::MOST_BYTES;

/// The longest head of a request, in bytes.
const MOST_HEAD: usize = 8 * 1024;
/// The most headers of a request.
const MOST_HEADERS: usize = 48;
/// The longest time between two requests of a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(40);
/// The longest time from the first to the last byte of a request, and from the start of a connection to its first request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that has arrived completely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// The path without a query; it starts with `/`.
    pub path: String,
    /// The code after `Bearer` in the `authorization` header; empty without one.
    pub code: String,
    /// The address of this server as the client knows it, `HOST:PORT`; empty if the client does not say it.
    pub host: String,
    pub body: Vec<u8>,
    /// True if the client wants to send further requests over this connection.
    keeps_open: bool,
}

/// A response to a request.
#[derive(Clone, Debug)]
pub struct Response {
    status: u16,
    mime: &'static str,
    body: Vec<u8>,
}

impl Response {
    fn new(status: u16, mime: &'static str, body: Vec<u8>) -> Self {
        Self { status, mime, body }
    }

    /// Returns a value in JSON.
    pub fn json(value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).unwrap_or_default();
        Self::new(200, "application/json", body)
    }

    pub fn page(html: &str) -> Self {
        Self::new(200, "text/html; charset=utf-8", html.into())
    }

    /// Returns a refusal with its reason, which is one line.
    pub fn refused(status: u16, why: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", why.into())
    }
}

/// One connection of a client.
pub struct Connection {
    stream: Arc<TcpStream>,
    /// The received bytes that are not yet part of a request.
    arrived: Vec<u8>,
    /// True if the connection stays open after the next response.
    is_open: bool,
    /// The longest time until the next request begins.
    idle_timeout: Duration,
}

impl Connection {
    pub fn new(stream: Arc<TcpStream>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        Ok(Self {
            stream,
            arrived: Vec::new(),
            is_open: true,
            idle_timeout: REQUEST_TIMEOUT,
        })
    }

    /// Returns the address of the client; `None` if it is not known.
    pub fn peer(&self) -> Option<IpAddr> {
        let peer = self.stream.peer_addr().ok()?;
        Some(peer.ip().to_canonical())
    }

    /// Waits for the next request. Returns `None` if the connection has ended. A request that is not valid is refused here, and ends the
    /// connection.
    pub fn next_request(&mut self) -> Option<Request> {
        if !self.is_open {
            return None;
        }
        match self.read_request() {
            Ok(request) => {
                self.is_open = request.keeps_open;
                Some(request)
            }
            Err(refused) => {
                self.is_open = false;
                if let Some(refused) = refused {
                    self.answer(&refused);
                }
                None
            }
        }
    }

    /// Reads a request. The error is the response to a request that is not valid; `None` if the connection has ended.
    fn read_request(&mut self) -> Result<Request, Option<Response>> {
        let refused = |status, why| Err(Some(Response::refused(status, why)));
        if self.arrived.is_empty() {
            self.receive(self.idle_timeout)?;
        }
        self.idle_timeout = IDLE_TIMEOUT;
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let (mut request, head_bytes, body_bytes) = loop {
            match parse(&self.arrived)? {
                Some(parsed) => break parsed,
                None if self.arrived.len() > MOST_HEAD => {
                    return refused(431, "the head of the request is too long");
                }
                None => self.receive(deadline.saturating_duration_since(Instant::now()))?,
            }
        };
        if body_bytes > MOST_BYTES {
            return refused(413, "the request body is too long");
        }
        let end = head_bytes + body_bytes;
        while self.arrived.len() < end {
            self.receive(deadline.saturating_duration_since(Instant::now()))?;
        }
        request.body = self.arrived[head_bytes..end].to_vec();
        self.arrived.drain(..end);
        Ok(request)
    }

    /// Waits for more bytes, and adds them to those that have arrived. The error is the response if none arrive in time; `None` if the
    /// connection has ended.
    fn receive(&mut self, wait: Duration) -> Result<(), Option<Response>> {
        if wait.is_zero() {
            return Err(Some(Response::refused(408, "the request took too long")));
        }
        let mut part = [0; 4096];
        let read = self.stream.set_read_timeout(Some(wait));
        match read.and_then(|()| (&*self.stream).read(&mut part)) {
            Ok(0) | Err(_) => Err(None),
            Ok(n) => {
                self.arrived.extend_from_slice(&part[..n]);
                Ok(())
            }
        }
    }

    /// Sends a response. Returns false if the connection ends with it.
    pub fn answer(&mut self, response: &Response) -> bool {
        let connection = if self.is_open { "keep-alive" } else { "close" };
        let mut bytes = format!(
            "{}content-length: {}\r\nconnection: {connection}\r\n\r\n",
            head(response.status, response.mime),
            response.body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(&response.body);
        (&*self.stream).write_all(&bytes).is_ok() && self.is_open
    }

    /// Starts a response that is a stream of events. The caller writes the events; the stream lasts as long as the connection.
    pub fn begin_events(&mut self) -> io::Result<&TcpStream> {
        self.is_open = false;
        let head = head(200, "text/event-stream") + "connection: close\r\n\r\n";
        (&*self.stream).write_all(head.as_bytes())?;
        Ok(&self.stream)
    }
}

/// Returns the status line and the headers that every response has.
fn head(status: u16, mime: &str) -> String {
    // A page may use only its own style and script, and may connect only to this server.
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
        script-src 'unsafe-inline'; connect-src 'self'";
    format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {mime}\r\ncache-control: no-store\r\n\
         content-security-policy: {POLICY}\r\nx-content-type-options: nosniff\r\n\
         referrer-policy: no-referrer\r\n",
        if status == 200 { "OK" } else { "Refused" }
    )
}

/// Parses the head of a request from the bytes that have arrived. Returns the request without its body, and the lengths of head and body
/// in bytes; `None` while the head is incomplete. The error is the response to a head that is not valid.
fn parse(arrived: &[u8]) -> Result<Option<(Request, usize, usize)>, Option<Response>> {
    let wrong = |why| Some(Response::refused(400, why));
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(arrived) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(wrong("not a valid HTTP request")),
    };
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        keeps_open: parsed.version == Some(1),
        ..Request::default()
    };
    let path = parsed.path.unwrap_or_default().split('?').next();
    request.path = path.unwrap_or_default().to_owned();
    if !request.path.starts_with('/') {
        return Err(wrong("not a valid HTTP request"));
    }
    let mut body = None;
    for header in parsed.headers {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        match header.name.to_ascii_lowercase().as_str() {
            // With two lengths, a proxy and this server may disagree about where the next request begins.
            "content-length" if body.is_some() => return Err(wrong("not a valid HTTP request")),
            "content-length" => match value.parse::<u32>() {
                Ok(length) if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                    body = Some(length as usize)
                }
                _ => return Err(Some(Response::refused(413, "the request body is too long"))),
            },
            "transfer-encoding" => {
                return Err(Some(Response::refused(411, "Content-Length is required")));
            }
            "connection" if value.eq_ignore_ascii_case("close") => request.keeps_open = false,
            "host" => request.host = crate::sanitize::bounded(value, 200),
            "authorization" => {
                let code = value.strip_prefix("Bearer ").unwrap_or_default();
                request.code = code.to_owned();
            }
            _ => {}
        }
    }
    Ok(Some((request, head, body.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a request. The error is the status of the response that refuses it.
    fn parse_text(text: &str) -> Result<Option<(Request, usize, usize)>, Option<u16>> {
        parse(text.as_bytes()).map_err(|refused| refused.map(|response| response.status))
    }

    #[test]
    fn requests_are_read_and_nonsense_refused() {
        let text =
            "POST /join?x HTTP/1.1\r\nAuthorization: Bearer abc\r\nContent-Length: 2\r\n\r\n{}";
        let (request, head_bytes, body_bytes) =
            parse_text(text).expect("a request").expect("whole");
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("POST", "/join")
        );
        assert_eq!(request.code, "abc");
        assert_eq!(head_bytes + body_bytes, text.len());
        assert!(request.keeps_open);
        assert_eq!(parse_text("POST /join HTTP/1.1\r\n"), Ok(None));
        let with =
            |header: &str| parse_text(&format!("POST / HTTP/1.1\r\n{header}\r\n\r\n")).map(drop);
        assert_eq!(with("Transfer-Encoding: chunked"), Err(Some(411)));
        assert_eq!(with("Content-Length: -1"), Err(Some(413)));
        assert_eq!(with("Content-Length: +1"), Err(Some(413)));
        assert_eq!(with("Content-Length: 99999999999"), Err(Some(413)));
        assert_eq!(
            with("Content-Length: 1\r\nContent-Length: 2"),
            Err(Some(400))
        );
        assert_eq!(parse_text("\u{1b}[2J\r\n\r\n"), Err(Some(400)));
        assert_eq!(
            parse_text("GET http://elsewhere/ HTTP/1.1\r\n\r\n").map(drop),
            Err(Some(400))
        );
    }
}
