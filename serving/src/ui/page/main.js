// Joins the sections with the stream of events. Addresses are relative, so that proxies may add a prefix.

async function get(path) {
  const response = await fetch(path, { headers: { accept: "application/json" }, cache: "no-store" });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.json();
}

/** The samples of each queue, continued with each state. */
const history_ = {
  queues: new Map(), tick: 0, interval: 3, most: 200,
  key: (queue) => JSON.stringify([queue.controller, queue.name]),
  reset(sent) {
    this.queues = new Map(sent.queues.map((queue) => [this.key(queue), queue]));
    [this.tick, this.interval, this.most] = [sent.tick, sent.intervalSeconds, sent.most];
  },
  add(state) {
    if (state.tick <= this.tick) return;
    this.tick = state.tick;
    for (const queue of state.queues) {
      const samples = this.queues.get(this.key(queue)) ?? { ready: [], active: [], failing: [] };
      samples.ready.push(queue.depth);
      samples.active.push(queue.processingCount + queue.waitingForWritesCount);
      samples.failing.push(queue.failingCount);
      for (const values of [samples.ready, samples.active, samples.failing]) values.splice(0, values.length - this.most);
      this.queues.set(this.key(queue), samples);
    }
  },
  of(queue) { return this.queues.get(this.key(queue)); },
};

let state = null;
let settings = [];
const sizes = new Map();

function render() {
  if (!state) return;
  renderProblems(state);
  renderFacts(state);
  renderResources(state);
  renderControllers(state, history_);
  renderCaches(state, sizes);
}

async function loadSizes() {
  if (document.hidden) return;
  try {
    const { caches } = await get("caches");
    for (const cache of caches) sizes.set(`${cache.resource} ${cache.version} ${cache.selected} ${cache.view}`, cache.bytes);
    render();
  } catch { /* Sizes are left out until the next try; the stream says whether the manager answers. */ }
}

async function loadSettings() {
  try {
    settings = (await get("ui/settings")).settings;
    renderSettings(settings, byId("filter").value);
  } catch (error) {
    show(byId("filtered"), `cannot be read: ${error.message}`);
    setTimeout(loadSettings, 5000);
  }
}

let source = null;
let heard = 0;

function connect() {
  source?.close();
  source = new EventSource("ui/events");
  source.addEventListener("history", (message) => history_.reset(JSON.parse(message.data)));
  source.addEventListener("state", (message) => {
    heard = Date.now();
    show(byId("live"), "live", "live");
    state = JSON.parse(message.data);
    history_.add(state);
    if (document.hidden) return;
    render();
    explain(state);
  });
  source.addEventListener("error", () => {
    const since = heard ? `, as of ${new Date(heard).toLocaleTimeString()}` : "";
    show(byId("live"), `not connected${since}`, "live off");
    // A browser does not try again by itself after an answer that is no stream.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
  });
}

function follow() {
  target = targetOfHash();
  byId("clear").hidden = !target;
  if (!target) {
    byId("explained").replaceChildren();
    return;
  }
  byId("namespace").value = target.namespace;
  byId("name").value = target.name;
  byId("resource").value = target.resource;
  if (state) explain(state);
}

byId("search").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  const [resource, namespace, name] = ["resource", "namespace", "name"].map((id) => byId(id).value.trim());
  const hash = "#" + hashOf({ resource, namespace, name });
  if (location.hash === hash) follow();
  else location.hash = hash;
});
byId("clear").addEventListener("click", () => { location.hash = ""; });
byId("filter").addEventListener("input", () => renderSettings(settings, byId("filter").value));
addEventListener("hashchange", follow);
document.addEventListener("visibilitychange", () => {
  render();
  if (!document.hidden) loadSizes();
});

follow();
connect();
loadSettings();
loadSizes();
setInterval(loadSizes, 30000);
