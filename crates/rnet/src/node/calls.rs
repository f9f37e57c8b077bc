//! The node's functions for services, actions, work queues and commands.

use std::time::Duration;

use rnet_call::service_name;
use rnet_core::Result;

use super::Node;
use crate::{
    ActionBuilder, ActionClientBuilder, Client, ClientBuilder, CommandBuilder, DriveBuilder,
    Message, MessageType, PullBuilder, PushBuilder, Received, ServiceBuilder,
};

impl Node {
    /// A builder for a server of a service, opened by [`ServiceBuilder::serve`] or
    /// [`ServiceBuilder::serve_stream`]. Several nodes may serve one name: each call goes to the server with
    /// the fewest open calls of the client.
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("service{}", std::process::id());
    /// # let node = rnet::Node::builder("texts").dir(dir).domain(&domain).open()?;
    /// let service = node.service::<[u8], [u8]>("/upper").serve(|text| Ok(text.to_ascii_uppercase()))?;
    /// let upper = node.client::<[u8], [u8]>("/upper").open()?;
    /// assert_eq!(&*upper.call(b"robot")?, b"ROBOT");
    /// # drop((service, upper));
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    pub fn service<Q: Message + ?Sized, R: Message + ?Sized>(
        &self,
        name: &str,
    ) -> ServiceBuilder<Q, R> {
        ServiceBuilder::new(&self.handle, name)
    }

    /// A builder for a client of a service, opened by [`ClientBuilder::open`]; its servers may start later.
    /// Hold one client for many calls, from any thread.
    pub fn client<Q: Message + ?Sized, R: Message + ?Sized>(
        &self,
        name: &str,
    ) -> ClientBuilder<Q, R> {
        ClientBuilder::new(&self.handle, name)
    }

    /// A server of an action: a service whose calls are *goals*, which have feedback while they run, and of
    /// which one runs at a time. It is opened by [`ActionBuilder::serve`].
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("action{}", std::process::id());
    /// # let node = rnet::Node::builder("mover").dir(dir).domain(&domain).open()?;
    /// let action = node.action::<[u8], [u8], [u8]>("/move").serve(|goal, context| {
    ///     for step in goal {
    ///         context.feedback(&[*step])?;
    ///     }
    ///     Ok(b"there".to_vec())
    /// })?;
    /// let mover = node.action_client::<[u8], [u8], [u8]>("/move").open()?;
    /// let goal = mover.send(&[1, 2], rnet::CallOptions::new())?;
    /// let mut steps = Vec::new();
    /// let result = goal.result_with(|step| steps.extend_from_slice(step))?;
    /// assert_eq!((&*result, &*steps), (&b"there"[..], &[1, 2][..]));
    /// # drop((action, goal, mover));
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    pub fn action<G: Message + ?Sized, F: Message + ?Sized, R: Message + ?Sized>(
        &self,
        name: &str,
    ) -> ActionBuilder<G, F, R> {
        ActionBuilder::new(&self.handle, name)
    }

    /// A builder for a client of an action, opened by [`ActionClientBuilder::open`]; its servers may start
    /// later.
    pub fn action_client<G: Message + ?Sized, F: Message + ?Sized, R: Message + ?Sized>(
        &self,
        name: &str,
    ) -> ActionClientBuilder<G, F, R> {
        ActionClientBuilder::new(&self.handle, name)
    }

    /// A single call, for at most 10 s. The node keeps the client of a service for its next call;
    /// [`Node::client`] opens a separate one.
    ///
    /// # Errors
    /// As [`ClientBuilder::open`] and [`rnet_call::Client::call`].
    pub fn call<Q: Message + ?Sized, R: Message + ?Sized>(
        &self,
        name: &str,
        request: &Q,
    ) -> Result<Received<R>> {
        self.cached_client::<Q, R>(name)?.call(request)
    }

    /// As [`Node::call`], for at most `timeout`.
    ///
    /// # Errors
    /// As [`Node::call`].
    pub fn call_timeout<Q: Message + ?Sized, R: Message + ?Sized>(
        &self,
        name: &str,
        request: &Q,
        timeout: Duration,
    ) -> Result<Received<R>> {
        self.cached_client::<Q, R>(name)?.call_timeout(request, timeout)
    }

    /// The cached client of a service.
    fn cached_client<Q: Message + ?Sized, R: Message + ?Sized>(
        &self,
        name: &str,
    ) -> Result<Client<Q, R>> {
        self.core().state.check_fork()?;
        let named = service_name(&self.handle, name)?;
        let open = || ClientBuilder::at(&self.handle, named.clone()).open();
        self.clients.get(named.as_str().to_owned(), open)
    }

    /// The cached client of a service, for encoded messages of these types.
    pub(crate) fn cached_client_of(
        &self,
        name: &str,
        (request, reply): (MessageType, MessageType),
    ) -> Result<Client<[u8], [u8]>> {
        self.core().state.check_fork()?;
        let named = service_name(&self.handle, name)?;
        let key = format!("{} {:?} {:?}", named.as_str(), request.desc(), reply.desc());
        let open =
            || ClientBuilder::at(&self.handle, named.clone()).message_types(request, reply).open();
        self.clients.get(key, open)
    }

    /// A builder for the pushing end of a work queue, opened by [`PushBuilder::open`]. Each job goes to one
    /// free worker among the nodes that [`Node::pull`] from that name.
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("queue{}", std::process::id());
    /// # let node = rnet::Node::builder("planner").dir(dir).domain(&domain).open()?;
    /// let worker = node.pull::<[u8]>("/jobs").open()?;
    /// let jobs = node.push::<[u8]>("/jobs").open()?;
    /// jobs.push(b"sweep the hall")?;
    /// let job = worker.recv()?;
    /// assert_eq!(&*job, b"sweep the hall");
    /// job.ack();
    /// jobs.wait_until_done()?;
    /// # drop((jobs, worker));
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    pub fn push<J: Message + ?Sized>(&self, name: &str) -> PushBuilder<J> {
        PushBuilder::new(&self.handle, name)
    }

    /// A worker of a work queue, which has one job at a time. It is opened by [`PullBuilder::open`], to
    /// receive jobs, or by [`PullBuilder::on`], with a handler.
    pub fn pull<J: Message + ?Sized>(&self, name: &str) -> PullBuilder<J> {
        PullBuilder::new(&self.handle, name)
    }

    /// A builder for the receiving end of a command, opened by [`CommandBuilder::apply`] or
    /// [`CommandBuilder::forward`]: it applies the messages of the only driver with authority
    /// ([`Node::drive`]), and a fallback if none arrives in time.
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// use std::time::Duration;
    /// use rnet::msgs::Twist;
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("command{}", std::process::id());
    /// # let node = rnet::Node::builder("base").dir(&dir).domain(&domain).open()?;
    /// let base = node
    ///     .command::<Twist>("/cmd_vel")
    ///     .deadline(Duration::from_millis(50))
    ///     .fallback(&Twist::default())
    ///     .apply(|twist| println!("to the wheels: {twist:?}"))?;
    /// let mut driver = node.drive::<Twist>("/cmd_vel").priority(10).take()?;
    /// driver.send(&Twist::default())?;
    /// # drop((driver, base));
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    pub fn command<T: Message + ?Sized>(&self, topic: &str) -> CommandBuilder<T> {
        CommandBuilder::new(&self.handle, topic)
    }

    /// A builder for the sending end of a command: [`DriveBuilder::take`] requests authority over it.
    pub fn drive<T: Message + ?Sized>(&self, topic: &str) -> DriveBuilder<T> {
        DriveBuilder::new(&self.handle, topic)
    }
}
