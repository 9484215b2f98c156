// The explanation of an object: what it waits for, and its last reconciles.

/** What is explained, as resource, namespace and name; null if nothing is. */
let target = null;

function targetOfHash() {
  const parts = location.hash.slice(1).split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return ""; }
  });
  const [resource, namespace, name] = parts.length === 2 ? [parts[0], "", parts[1]] : parts;
  return resource && name ? { resource, namespace: namespace ?? "", name } : null;
}

const hashOf = ({ resource, namespace, name }) =>
  [resource, ...(namespace ? [namespace] : []), name].map(encodeURIComponent).join("/");

function openKey(resource, key) {
  const at = key.indexOf("/");
  const [namespace, name] = at < 0 ? ["", key] : [key.slice(0, at), key.slice(at + 1)];
  location.hash = hashOf({ resource: resource ?? "", namespace, name });
  byId("explain").scrollIntoView({ block: "start" });
}

function renderResources(state) {
  const resources = [...new Set(state.queues.map((queue) => queue.resource).filter(Boolean))].sort();
  const select = byId("resource");
  const chosen = select.value || target?.resource;
  list(select, resources, (one) => one, (one) => {
    const option = el("option", "", one);
    option.value = one;
    return option;
  });
  if (chosen && resources.includes(chosen) && select.value !== chosen) select.value = chosen;
}

const trigger = (one) => {
  const what = one.object ? `${one.resource} ${one.object}` : "it";
  const verb = { Added: "was added", Updated: "was updated", Deleted: "was deleted", Listed: "was listed",
    Requeue: "asked to be reconciled again", BackOff: "failed before", OutageEnded: "waited for the API server" }[one.reason] ?? one.reason;
  return `${what} ${verb}` + (one.count > 1 ? ` (${one.count} times)` : "") + (one.delayed ? ", delayed" : "");
};

const write = (one) => `${one.verb} ${one.resource}` + (one.object ? ` ${one.object}` : "") +
  (one.count > 1 ? ` and ${one.count - 1} more` : "") + (one.failed ? `, ${one.failed} failed: ${one.error ?? ""}` : "");

const event = (one) => `${one.reason}: ${one.message}` + (one.count > 1 ? ` (${one.count} times)` : "");

function reconcile(one) {
  const lines = [];
  const add = (name, values, className) => {
    for (const value of values) lines.push(el("dt", "", name), el("dd", className ?? "", value));
  };
  add("because", one.triggers.map(trigger));
  const saw = one.missing ? "no such object" : one.resourceVersion ? `version ${one.resourceVersion}${one.terminating ? ", being deleted" : ""}` : null;
  add("saw", saw ? [saw] : []);
  add("decided", one.decisions);
  add("wrote", one.writes.map(write), "mono");
  add("event", one.events.map(event));
  if (one.leftOut) add("and", [`${one.leftOut} more that are not listed`]);
  const ended = one.outcome === "Succeeded" ? "done" : one.outcome.toLowerCase();
  const again = one.requeueAfterSeconds === null ? "" : `again in ${seconds(one.requeueAfterSeconds)} at the latest`;
  if (one.error || again) add(ended, [one.error ?? again], one.error ? "bad" : "");
  const tried = one.attempt > 1 ? `, attempt ${one.attempt}` : "";
  return el("li", one.outcome === "Succeeded" ? "" : "bad",
    el("p", "quiet", `${one.at}, took ${one.tookSeconds < 0.001 ? "less than 1 ms" : seconds(one.tookSeconds)}${tried}`), el("dl", "", ...lines));
}

function explanation(key) {
  const state = inWords(key.state) + (key.stateSeconds ? ` for ${seconds(key.stateSeconds)}` : "");
  const there = key.exists === false ? "; the cache has no such object" : "";
  const failures = key.failures ? `; failed ${plural(key.failures, "time")} in a row` : "";
  const waits = key.waitsFor.map((wait) => wait.message + (wait.inSeconds === null ? "" : `, in ${seconds(wait.inSeconds)}`));
  return el("div", "loop-of",
    el("h3", "", `${key.resource ?? ""} ${key.key}`),
    el("p", "quiet", `${key.controller}, loop ${key.loop}: ${state}${there}${failures}`),
    waits.length ? el("p", "waits", "Waits for ", waits.join("; and ")) : null,
    key.pendingTriggers.length ? el("p", "waits", "Is enqueued because ", key.pendingTriggers.map(trigger).join("; ")) : null,
    key.reconciles.length ? el("ul", "story", ...key.reconciles.map(reconcile))
      : el("p", "quiet", "None of its reconciles is kept."));
}

/** Looks the target up in every controller that reconciles its resource. */
async function explain(state) {
  if (!target) return;
  const asked = target;
  const area = byId("explained");
  const say = (text) => area.replaceChildren(el("p", "quiet", text));
  const queues = state.queues.filter((queue) => queue.resource === asked.resource);
  if (queues.length === 0) {
    say(`No controller that runs reconciles ${asked.resource}.`);
    return;
  }
  const path = [...(asked.namespace ? [asked.namespace] : []), asked.name].map(encodeURIComponent).join("/");
  try {
    const controllers = [...new Set(queues.map((queue) => queue.controller))];
    const answers = await Promise.all(controllers.map((controller) =>
      get(`controllers/${encodeURIComponent(controller)}/keys/${path}`)));
    if (target !== asked) return;
    const keys = answers.flatMap((answer) => answer.keys).filter((key) => key.resource === asked.resource);
    const items = keys.map((key) => ({ ...key, reconciles: key.reconciles.map((one) => ({ ...one, secondsAgo: 0 })),
      stateSeconds: key.stateSeconds === null ? null : Math.round(key.stateSeconds) }));
    if (!area.firstElementChild?.classList.contains("loop-of")) {
      area.replaceChildren();
      area.kept = new Map();
    }
    list(area, items, (key) => `${hashOf(asked)} ${key.controller} ${key.loop}`, explanation);
    if (items.length === 0) say(`${path} is not known to the controllers of ${asked.resource}.`);
  } catch (error) {
    if (target === asked) say(`Cannot be explained: ${error.message}`);
  }
}
