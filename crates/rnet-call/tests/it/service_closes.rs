//! A server that closes while a handler runs.

use std::sync::{Arc, Barrier, Mutex, RwLock, mpsc};

use rnet::{CallOptions, CancelReason, Client, Error, HandlerError, Node, Service};

use crate::common::{LONG, Net, eventually};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
struct N {
    x: u64,
}

fn n(x: u64) -> N {
    N { x }
}

/// A service that its handler closes while it runs, and the client that calls it.
struct ClosingServer {
    server: Node,
    client: Client<N, N>,
    slot: Arc<Mutex<Option<Service>>>,
}

impl ClosingServer {
    fn new(net: &Net) -> ClosingServer {
        let client = net.node("b").client::<N, N>("/plan").open().unwrap();
        ClosingServer { server: net.node("a"), client, slot: Arc::default() }
    }

    /// Closes the service from within its handler.
    fn close(&self) -> impl Fn() + Send + Sync + Clone + 'static {
        let slot = self.slot.clone();
        move || drop(slot.lock().unwrap().take())
    }

    /// Opens the service once the client has removed the previous one: a call to a closed server would also
    /// return `ServerLost`.
    fn open(&self, service: rnet::Result<Service>) -> &Client<N, N> {
        *self.slot.lock().unwrap() = Some(service.unwrap());
        eventually("the client calls this service", || self.client.server_count() == 1);
        &self.client
    }

    fn is_gone(&self) {
        eventually("the client knows that the service is closed", || {
            self.client.server_count() == 0
        });
    }
}

#[test]
fn reply_of_a_handler_that_runs_while_its_server_closes_is_delivered() {
    let net = Net::new("closing");
    let closing = ClosingServer::new(&net);
    let plan = || closing.server.service::<N, N>("/plan");
    for x in [1, 0] {
        let close = closing.close();
        let service = plan().serve(move |x: &N| {
            close();
            if x.x == 0 { Err(HandlerError::new("odd", "zero")) } else { Ok(n(2 * x.x)) }
        });
        match closing.open(service).call_timeout(&n(x), LONG) {
            Ok(reply) => assert_eq!((x, reply.x), (1, 2)),
            Err(failed) => {
                assert!(x == 0 && matches!(failed, Error::CallFailed { .. }), "{failed}");
            }
        }
        closing.is_gone();
    }
    let close = closing.close();
    let first = plan().serve_stream(move |x, responder| {
        close();
        responder.send(x)?;
        Ok(())
    });
    assert_eq!(closing.open(first).call_timeout(&n(3), LONG).unwrap().x, 3);
    closing.is_gone();
    // A handler that checks for cancellation may have done a part of the work.
    let close = closing.close();
    let asks = plan().serve_stream(move |x, responder| {
        close();
        assert!(responder.is_cancelled());
        responder.send(x)?;
        Ok(())
    });
    let lost = closing.open(asks).call_timeout(&n(4), LONG).unwrap_err();
    assert!(matches!(lost, Error::ServerLost { .. }), "{lost}");
    closing.is_gone();
    // A stream ends at its current position.
    let close = closing.close();
    let stream = plan().serve_stream(move |x, responder| {
        responder.send(x)?;
        close();
        responder.send(x)?;
        Ok(())
    });
    let options = CallOptions::new().timeout(LONG);
    let mut replies = closing.open(stream).stream(&n(5), options).unwrap();
    assert_eq!(replies.next().unwrap().unwrap().x, 5);
    let lost = replies.next().unwrap_err();
    assert!(matches!(lost, Error::ServerLost { .. }), "{lost}");
}

/// With queued calls, and with or without closing the node as well.
#[test]
fn running_handlers_reply_and_queued_calls_are_lost() {
    for with_node in [false, true] {
        let net = Net::new(&format!("closing many {with_node}"));
        let server = net.node("a");
        let clients: Vec<_> = (0..4)
            .map(|at| net.node(&format!("b{at}")).client::<N, N>("/plan").open().unwrap())
            .collect();
        let gate = Arc::new(RwLock::new(()));
        let shut = gate.write().unwrap();
        let (begins, begun) = mpsc::channel();
        let theirs = gate.clone();
        let service =
            server.service::<N, N>("/plan").at_once(4).serve_stream(move |x, responder| {
                begins.send((x.x, responder.context())).unwrap();
                drop(theirs.read().unwrap());
                responder.send(&n(2 * x.x))?;
                Ok(())
            });
        let service = service.unwrap();
        let start = |x: u64, client: &Client<N, N>| {
            client.start(&n(x), CallOptions::new().timeout(LONG)).unwrap()
        };
        let running: Vec<_> = clients.iter().zip(0..).map(|(c, x)| start(x, c)).collect();
        let contexts: Vec<_> = running.iter().map(|_| begun.recv().unwrap()).collect();
        let waiting: Vec<_> = clients.iter().map(|client| start(100, client)).collect();
        eventually("the calls are queued", || service.stats().waiting == 4);
        let closes = std::thread::spawn(move || {
            drop(with_node.then_some(server));
            drop(service);
        });
        // The handler of this call checks for cancellation.
        let (asked, context) = &contexts[0];
        eventually("the server closes", || context.is_cancelled());
        drop(shut);
        for (call, x) in running.into_iter().zip(0..) {
            match call.wait() {
                Ok(reply) => assert!(x != *asked && reply.x == 2 * x, "{x}: {}", reply.x),
                Err(lost) => {
                    assert!(x == *asked && matches!(lost, Error::ServerLost { .. }), "{x}: {lost}");
                }
            }
        }
        for call in waiting {
            let lost = call.wait().unwrap_err();
            assert!(matches!(lost, Error::ServerLost { .. }), "{lost}");
        }
        closes.join().unwrap();
    }
}

#[test]
fn result_of_a_handler_that_ignores_the_close_is_delivered() {
    let net = Net::new("closing goals");
    let (a, b) = (net.node("a"), net.node("b"));
    let client = b.action_client::<N, N, N>("/go").open().unwrap();
    for asks in [false, true] {
        let slot = Arc::new(Mutex::new(None::<Service>));
        let own = slot.clone();
        let action = a.action::<N, N, N>("/go").serve(move |goal, context| {
            drop(own.lock().unwrap().take());
            if asks {
                assert_eq!(context.cancel_reason(), Some(CancelReason::ServerClosing));
            }
            Ok(n(2 * goal.x))
        });
        *slot.lock().unwrap() = Some(action.unwrap());
        eventually("the client calls this action", || client.server_count() == 1);
        let goal = client.send(&n(1), CallOptions::new().timeout(LONG)).unwrap();
        match goal.result_timeout(LONG) {
            Ok(result) => assert!(!asks && result.x == 2),
            Err(Error::Cancelled { reason: CancelReason::ServerClosing, .. }) => assert!(asks),
            Err(error) => panic!("{error}"),
        }
        eventually("the client knows that it is closed", || client.server_count() == 0);
    }
}

/// Each closes the other's service while both run.
#[test]
fn handlers_close_each_others_service() {
    let net = Net::new("close each other");
    let (server, caller) = (net.node("a"), net.node("b"));
    let services: Arc<[Mutex<Option<Service>>; 2]> = Arc::default();
    let barrier = Arc::new(Barrier::new(2));
    let names = ["/one", "/two"];
    for (own, name) in names.into_iter().enumerate() {
        let (theirs, barrier) = (services.clone(), barrier.clone());
        let service = server.service::<N, N>(name).serve(move |x: &N| {
            barrier.wait();
            let other = theirs[1 - own].lock().unwrap().take();
            drop(other);
            Ok::<N, HandlerError>(*x)
        });
        *services[own].lock().unwrap() = Some(service.unwrap());
    }
    let clients = names.map(|name| caller.client::<N, N>(name).open().unwrap());
    let options = || CallOptions::new().timeout(LONG);
    let calls = clients.each_ref().map(|client| client.start(&n(1), options()).unwrap());
    for call in calls {
        assert_eq!(call.wait().unwrap().x, 1);
    }
}
