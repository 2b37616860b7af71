//! Listens, and ends in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

use crate::access::{self, Access};
use crate::app::App;
use crate::door::{Door, Place};
use crate::error::ServeError;
use crate::routes::{BASE, router};
use crate::{Options, Transport, assets, tokens_folder};

/// So long a browser may take for TLS, and from the first byte of a request to the end of its head.
const PATIENCE: Duration = Duration::from_secs(15);
/// So often is asked whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// So long jobs may take to end.
const PATIENCE_WITH_JOBS: Duration = Duration::from_secs(30);
/// And answers that are on their way.
const PATIENCE_WITH_ANSWERS: Duration = Duration::from_secs(5);
/// The longest body, but of archives.
const LONGEST_BODY: usize = 8 << 20;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: std::net::TcpListener,
    address: SocketAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
    transport: Transport,
    door: Door,
}

impl Server {
    /// Listens. Nobody is answered yet.
    ///
    /// # Errors
    /// If the address cannot be listened on; if others than the users of this machine would be let in without TLS; if the
    /// certificate cannot be used.
    pub fn bind(options: Options) -> Result<Server, ServeError> {
        let listen = options.listen;
        let (transport, secrets) = (options.transport.clone(), options.secrets.clone());
        // Judged before the port is taken, and once more with the port that the system chose.
        Access::new(listen, &transport, options.authenticate, &tokens_folder(&secrets))?;
        let tls = access::acceptor(&transport, listen, &secrets)?;
        let failed = |source| ServeError::Listen { address: listen, source };
        let listener = std::net::TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let access = Access::new(address, &transport, options.authenticate, &tokens_folder(&secrets))?;
        // A proxy, and everybody on this machine, come from one address.
        let one_address =
            address.ip().to_canonical().is_loopback() || matches!(transport, Transport::BehindProxy(_));
        let door = Door::new(options.connections, one_address);
        Ok(Server { app: Arc::new(App::new(options, access)), listener, address, tls, transport, door })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to type into a browser.
    pub fn url(&self) -> String {
        match &self.transport {
            Transport::BehindProxy(url) => url.trim_end_matches('/').to_owned(),
            Transport::Plain => format!("http://{}", self.shown()),
            Transport::OwnTls | Transport::Tls { .. } => format!("https://{}", self.shown()),
        }
    }

    /// Whether browsers have to log in.
    pub fn asks_for_tokens(&self) -> bool {
        !self.app.access.is_open()
    }

    /// Answers until `stop` is set. Then it takes no more connections, stops its jobs, which keep what they have measured,
    /// and waits some seconds for answers that are on their way.
    ///
    /// # Errors
    /// If the runtime cannot be started, or the system takes the socket away.
    pub fn serve(self, stop: &AtomicBool) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("serve").build();
        let runtime = runtime.map_err(|e| ServeError::System(format!("threads cannot be started: {e}")))?;
        let served = runtime.block_on(self.answer(stop));
        // Reports that nobody waits for any more.
        runtime.shutdown_timeout(Duration::from_millis(100));
        served
    }

    fn shown(&self) -> String {
        match self.address.ip().is_unspecified() {
            true => {
                let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
                let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("localhost");
                format!("{host}:{}", self.address.port())
            }
            false => self.address.to_string(),
        }
    }

    async fn answer(self, stop: &AtomicBool) -> Result<(), ServeError> {
        let listener = TcpListener::from_std(self.listener)
            .map_err(|source| ServeError::Listen { address: self.address, source })?;
        let service = service(&self.app);
        let tls = self.tls.map(TlsAcceptor::from);
        let graceful = Arc::new(GracefulShutdown::new());
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = look.tick() => {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    continue;
                }
            };
            let Ok((stream, peer)) = accepted else {
                // No more files, or the client has gone: not at once again.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (place, loss) = self.door.enter(peer.ip());
            let service = OfConnection { service: TowerToHyperService::new(service.clone()), place };
            let (tls, watcher) = (tls.clone(), graceful.watcher());
            tokio::spawn(async move {
                tokio::select! {
                    // What goes wrong with a connection is its client's affair.
                    _ = converse(stream, tls, service, watcher) => {}
                    () = loss.comes() => {}
                }
            });
        }
        drop(listener);
        self.app.closing.send_replace(true);
        let app = Arc::clone(&self.app);
        let all_ended = tokio::task::spawn_blocking(move || app.jobs.close(PATIENCE_WITH_JOBS)).await;
        if let Some(graceful) = Arc::into_inner(graceful) {
            // Whoever does not take its answer by then does not want it.
            let _ = tokio::time::timeout(PATIENCE_WITH_ANSWERS, graceful.shutdown()).await;
        }
        match all_ended {
            Ok(true) => Ok(()),
            _ => Err(ServeError::System(format!(
                "some jobs did not end within {} s; their stored results are kept",
                PATIENCE_WITH_JOBS.as_secs()
            ))),
        }
    }
}

/// What answers on one connection: requests know its place.
struct OfConnection {
    service: TowerToHyperService<Router>,
    place: Arc<Place>,
}

impl Service<Request<Incoming>> for OfConnection {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(Arc::clone(&self.place));
        self.service.call(request)
    }
}

async fn converse(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    service: OfConnection,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    // Small events are not to wait for each other.
    stream.set_nodelay(true)?;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(128).keep_alive_interval(Some(PATIENCE));
    match tls {
        None => {
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            watcher.watch(connection).await
        }
        Some(tls) => {
            let stream = tokio::time::timeout(PATIENCE, tls.accept(stream)).await??;
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            watcher.watch(connection).await
        }
    }
}

/// Everything that answers, from the outside in: headers, who may come in, compression, the handler.
fn service(app: &Arc<App>) -> Router {
    let (api, _) = router();
    // Traces and archives are compressed already, and events go out one by one.
    let compressible = SizeAbove::new(512)
        .and(NotForContentType::const_new("text/event-stream"))
        .and(NotForContentType::const_new("application/octet-stream"))
        .and(NotForContentType::const_new("application/vnd.apache.parquet"))
        .and(NotForContentType::const_new("application/x-tar"))
        .and(NotForContentType::const_new("image/png"))
        .and(NotForContentType::const_new("audio/wav"));
    Router::new()
        .nest(BASE, api)
        .fallback(assets::asset)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(
            CompressionLayer::new()
                .quality(tower_http::CompressionLevel::Precise(4))
                .compress_when(compressible),
        )
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), access::guard))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), access::headers))
        .with_state(Arc::clone(app))
}
