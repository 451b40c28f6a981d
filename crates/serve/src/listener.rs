//! The listener for controllers: a TCP port or a Unix socket, with a limit on the number of connections.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::Connected;

/// A listening socket.
pub enum Listener {
    /// A TCP socket.
    Tcp(TcpListener),
    /// A Unix socket. Its file is removed when the listener is dropped.
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket, which is removed when this value is dropped.
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // An error is ignored, because another program may have removed the file already.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Listener {
    /// Listens on `HOST:PORT`, or on the Unix socket `unix:PATH`. If the path has a socket file to which no process
    /// listens, the new socket replaces the file. The permissions of the socket's file (set by the umask) and of its
    /// folder determine which users may connect.
    ///
    /// # Errors
    /// Fails if the address is in use or not available.
    pub async fn bind(address: &str) -> io::Result<Self> {
        let Some(path) = address.strip_prefix("unix:") else {
            return TcpListener::bind(address).await.map(Self::Tcp);
        };
        // gRPC accepts `unix:relative`, `unix:/absolute` and `unix:///absolute`.
        let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
        let listener = match UnixListener::bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(&path).await => {
                std::fs::remove_file(&path)?;
                UnixListener::bind(&path)
            }
            result => result,
        };
        Ok(Self::Unix(listener?, SocketFile(path)))
    }

    /// Returns the address to which controllers must connect.
    ///
    /// # Errors
    /// Fails if the kernel does not report the address.
    pub fn address(&self) -> io::Result<String> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(|address| address.to_string()),
            Self::Unix(_, file) => Ok(format!("unix:{}", file.0.display())),
        }
    }

    /// Returns the stream of connections. At most `limit` connections are open at the same time; the stream closes
    /// further connections at once.
    pub fn connections(self, limit: usize) -> impl Stream<Item = io::Result<Connection>> {
        let (sockets, file): (Pin<Box<dyn Stream<Item = io::Result<Socket>> + Send>>, _) = match self {
            Self::Tcp(listener) => {
                (Box::pin(TcpListenerStream::new(listener).map(|socket| socket.map(Socket::Tcp))), None)
            }
            Self::Unix(listener, file) => {
                (Box::pin(UnixListenerStream::new(listener).map(|socket| socket.map(Socket::Unix))), Some(file))
            }
        };
        let places = Arc::new(Semaphore::new(limit));
        sockets.filter_map(move |socket| {
            let _ = &file;
            let socket = match socket {
                Ok(socket) => socket,
                Err(error) => return Some(Err(error)),
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tracing::warn!(limit, "a controller's connection is closed: there are too many");
                return None;
            };
            if let Socket::Tcp(socket) = &socket
                && let Err(error) = socket.set_nodelay(true)
            {
                return Some(Err(error));
            }
            Some(Ok(Connection { socket, _place: place }))
        })
    }
}

/// Returns whether the socket file at this path has no listener.
async fn is_abandoned(path: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    UnixStream::connect(path).await.is_err_and(refused)
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A controller's connection. It counts towards the limit on open connections until it is dropped.
pub struct Connection {
    socket: Socket,
    _place: OwnedSemaphorePermit,
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_read(context, buffer),
            Socket::Unix(socket) => Pin::new(socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_write(context, bytes),
            Socket::Unix(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_flush(context),
            Socket::Unix(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_shutdown(context),
            Socket::Unix(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}

/// Returns a text that states the error of a listener and a remedy. `example` is a valid address.
pub fn unserved(error: &io::Error, example: &str) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "end what listens there (`ss -lp` lists it), or give another address",
        io::ErrorKind::AddrNotAvailable => "give an address of this host (`ip address` lists them)",
        io::ErrorKind::PermissionDenied => "give a port from 1024 on or a folder that may be written, or run as root",
        io::ErrorKind::NotFound => "make the folder first",
        _ => return format!("{error}; an address is HOST:PORT, for example {example}"),
    };
    format!("{error}; {advice}")
}
