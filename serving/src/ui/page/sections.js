// The sections of the state: what needs attention, controllers with their queues, caches, configuration.

/** What needs attention, the worst first. Readiness repeats two of them as checks, which would be said twice. */
function problemsOf(state) {
  const found = [];
  const bad = (what, why) => found.push({ level: "bad", what, why });
  for (const check of state.checks) {
    if (check.error && !["caches", "controllers"].includes(check.name)) bad(`Health check ${check.name}`, check.error);
  }
  for (const { controller, problem } of state.problems) bad(controller, problem);
  found.push(...staleCaches(state.caches));
  for (const cache of state.caches) {
    if (cache.undecodable > 0) {
      found.push({ level: "warn", what: `Cache of ${cache.resource}`,
        why: `${plural(cache.undecodable, "object")} cannot be decoded and ${cache.undecodable === 1 ? "is" : "are"} not reconciled` });
    }
  }
  for (const queue of state.queues) {
    if (queue.failingCount > 0) {
      found.push({ level: "warn", what: queue.controller, why: `${plural(queue.failingCount, "key fails", "keys fail")}` +
        (queue.lastError ? `, the last with: ${queue.lastError.error}` : ""),
        keys: queue.failing.slice(0, 5).map((one) => one.key), resource: queue.resource });
    }
  }
  return found.sort((one, other) => (one.level === "bad" ? 0 : 1) - (other.level === "bad" ? 0 : 1));
}

/** The caches that are behind. Those with one cause, such as an outage of the API server, are one problem. */
function staleCaches(caches) {
  const groups = new Map();
  for (const cache of caches) {
    const why = cache.reason ?? cache.lastError;
    const isUnsynced = !cache.synced && !["NotStarted", "Stopped"].includes(cache.phase) && why;
    if (!isUnsynced && cache.phase !== "BackingOff") continue;
    const text = `${isUnsynced ? "not synced" : "not up to date"}: ${why ?? "the watch ended"}`;
    const cause = text.replaceAll(cache.resource, "");
    groups.set(cause, [...(groups.get(cause) ?? []), { resource: cache.resource, text }]);
  }
  return [...groups.values()].map((group) => group.length === 1
    ? { level: "bad", what: `Cache of ${group[0].resource}`, why: group[0].text }
    : { level: "bad", what: `${group.length} caches`, why: group[0].text, resources: group.map((one) => one.resource).sort() });
}

function keyLinks(resource, keys) {
  return keys.map((key) => {
    if (!resource) return el("span", "mono", key, " ");
    const link = el("button", "link mono", key);
    link.type = "button";
    link.addEventListener("click", () => openKey(resource, key));
    return el("span", "", link, " ");
  });
}

function renderProblems(state) {
  const problems = problemsOf(state);
  const worst = problems[0]?.level ?? "good";
  const count = problems.length;
  show(byId("verdict"), count ? `${plural(count, "thing needs", "things need")} attention` : "Nothing needs attention",
    `verdict ${worst}`);
  document.title = (count ? `(${count}) ` : "") + "kube-controller-manager";
  byId("problems").hidden = count === 0;
  list(byId("problems").querySelector("ul"), problems, (one) => `${one.what} ${one.level} ${one.resource ?? one.resources?.[0] ?? ""}`, (one) =>
    el("li", one.level, el("strong", "", one.what), one.why,
      one.resources ? el("details", "", el("summary", "", "which"), el("p", "quiet", one.resources.join(", "))) : null,
      one.keys?.length ? el("div", "keys", ...keyLinks(one.resource, one.keys)) : null));
}

function renderFacts(state) {
  show(byId("version"), `${state.version}, as Kubernetes ${state.kubernetes}`);
  const facts = [["Up for", seconds(state.upSeconds)]];
  if (state.leases.length === 0) facts.push(["Leader election", "off: this process acts"]);
  for (const lease of state.leases) {
    const role = lease.leads ? `leads, renewed ${lease.renewedSecondsAgo ? seconds(lease.renewedSecondsAgo) + " ago" : "just now"}` : "waits";
    facts.push([`Lease ${lease.name}`, role]);
    facts.push(["Holder", lease.holder ?? "not known"]);
  }
  const running = state.controllers.filter((one) => one.state === "Running").length;
  const enabled = state.controllers.filter((one) => one.state !== "Disabled").length;
  facts.push(["Controllers", `${running} of ${enabled} running`]);
  list(byId("facts"), facts, (fact) => fact[0], ([name, value]) => el("div", "", el("dt", "", name), el("dd", "", value)));
  const failing = state.checks.filter((check) => check.error);
  const passing = state.checks.length - failing.length;
  const checks = [...failing.map((check) => ({ tone: "bad", text: `${check.name}: ${check.error}` })),
    { tone: failing.length ? "rest" : "good", text: failing.length ? `${plural(passing, "other health check passes", "other health checks pass")}`
      : `${plural(passing, "health check passes", "health checks pass")}` }];
  list(byId("checks"), checks, (check) => check.text, (check) => el("li", `dot ${check.tone}`, check.text));
}

const RESTING = ["Disabled", "Skipped"];
const GOOD = ["Running"];

function toneOf(controller, problem) {
  if (problem || controller.state === "Restarting") return "bad";
  return GOOD.includes(controller.state) ? "good" : "rest";
}

const inWords = (state) => state.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

function loopOf(queue) {
  const count = (name, value, tone) => (value > 0 ? el("span", tone, el("b", "", value.toLocaleString("en")), ` ${name}`) : null);
  const oldest = queue.oldestSeconds >= 1 ? `, the oldest for ${seconds(queue.oldestSeconds)}` : "";
  const counts = [count(`ready${oldest}`, queue.depth, ""), count("processing", queue.processingCount, ""),
    count("waiting for writes", queue.waitingForWritesCount, ""), count("due later", queue.delayedCount, "quiet"),
    count("failing", queue.failingCount, "bad")].filter(Boolean);
  const slot = el("div", "slot");
  slot.dataset.queue = queue.name;
  return el("div", "loop",
    el("p", "quiet", queue.name === queue.kind?.toLowerCase() ? queue.resource : [queue.name, queue.resource].filter(Boolean).join(", ")),
    slot,
    el("div", "counts", ...counts.length ? counts : [el("span", "quiet", "idle")]));
}

function renderControllers(state, history) {
  const problems = new Map(state.problems.map((one) => [one.controller, one.problem]));
  const cards = state.controllers.filter((one) => !RESTING.includes(one.state)).map((controller) => ({
    controller: { name: controller.name, state: controller.state, failures: controller.failures, lastError: controller.lastError },
    seconds: Math.round(controller.stateSeconds / 60) * 60,
    problem: problems.get(controller.name),
    queues: state.queues.filter((queue) => queue.controller === controller.name),
  }));
  const rank = { bad: 0, rest: 1, good: 2 };
  const toned = (card) => toneOf(card.controller, card.problem);
  cards.sort((one, other) => rank[toned(one)] - rank[toned(other)] || one.controller.name.localeCompare(other.controller.name));
  list(byId("controllers").querySelector(".cards"), cards, (card) => card.controller.name, (card) => {
    const tone = toned(card);
    const since = card.seconds ? `${inWords(card.controller.state)} for ${seconds(card.seconds)}` : inWords(card.controller.state);
    const earlier = card.controller.failures > 0 && !card.problem
      ? el("p", "message quiet", `Failed ${plural(card.controller.failures, "time")} before, the last time with: ${card.controller.lastError}`) : null;
    return el("li", `card ${tone === "bad" ? "bad" : ""}`,
      el("div", "head", el("h3", "", card.controller.name), el("span", `dot ${tone}`, since)),
      card.problem ? el("p", "message bad", card.problem) : null, earlier,
      ...card.queues.map(loopOf));
  });
  // Charts move with every sample, and the text around them stays, so that the focus and a selection stay too.
  for (const { controller, queues } of cards) {
    const card = byId("controllers").querySelector(".cards").kept.get(controller.name).node;
    for (const slot of card.querySelectorAll(".slot")) {
      const samples = history.of(queues.find((queue) => queue.name === slot.dataset.queue));
      slot.replaceChildren(...(samples ? [chart(samples, history.most)] : []));
    }
  }
  const resting = state.controllers.filter((one) => RESTING.includes(one.state));
  byId("resting").hidden = resting.length === 0;
  show(byId("resting").querySelector("summary"), `${plural(resting.length, "controller")} not running on purpose`);
  list(byId("resting").querySelector("ul"), resting.map(({ name, state, reason }) => ({ name, state, reason })), (one) => one.name,
    (one) => el("li", "", el("span", "", one.name), el("span", "end quiet", inWords(one.state)),
      el("span", "under quiet", one.reason ?? "the cluster does not serve what it needs")));
  show(byId("span"), `last ${seconds(history.interval * history.most)}`);
}

function renderCaches(state, sizes) {
  const caches = state.caches.map((cache) => ({
    id: `${cache.resource} ${cache.version} ${cache.selected} ${cache.view}`, resource: cache.resource, selected: cache.selected,
    phase: cache.phase, synced: cache.synced, objects: cache.objects, undecodable: cache.undecodable,
    problem: cache.synced && cache.phase === "Watching" ? null : cache.reason ?? cache.lastError,
    event: cache.lastEventSecondsAgo === null ? null : Math.floor(cache.lastEventSecondsAgo / 10) * 10,
  }));
  for (const cache of caches) cache.bytes = sizes.get(cache.id) ?? null;
  caches.sort((one, other) => Number(one.synced) - Number(other.synced) || other.objects - one.objects ||
    one.resource.localeCompare(other.resource) || one.id.localeCompare(other.id));
  const objects = caches.reduce((sum, cache) => sum + cache.objects, 0);
  const known = caches.reduce((sum, cache) => sum + (cache.bytes ?? 0), 0);
  show(byId("cached"), `${plural(objects, "object")} in ${plural(caches.length, "cache")}` + (known ? `, ${bytes(known)} at least` : ""));
  const isQuiet = (cache) => cache.objects === 0 && toneOfCache(cache) === "good" && !cache.undecodable;
  const quiet = caches.filter(isQuiet);
  list(byId("caches").querySelector(".rows"), caches.filter((cache) => !isQuiet(cache)), (cache) => cache.id, cacheRow);
  byId("empty").hidden = quiet.length === 0;
  show(byId("empty").querySelector("summary"), plural(quiet.length, "empty cache"));
  list(byId("empty").querySelector(".rows"), quiet, (cache) => cache.id, cacheRow);
}

const toneOfCache = (cache) => (cache.synced && cache.phase === "Watching" ? "good" : cache.problem ? "bad" : "rest");

function cacheRow(cache) {
  const tone = toneOfCache(cache);
  const size = cache.bytes === null ? "" : `, ${bytes(cache.bytes)}`;
  const details = [cache.selected === "everything" ? null : cache.selected,
    cache.event === null ? "no event yet" : `last event ${cache.event < 10 ? "just now" : seconds(cache.event) + " ago"}`,
    cache.undecodable ? `${cache.undecodable} cannot be decoded` : null, tone === "good" ? null : inWords(cache.phase)];
  return el("li", "", el("span", `dot ${tone}`, cache.resource), el("span", "end", `${plural(cache.objects, "object")}${size}`),
    el("span", "under quiet", details.filter(Boolean).join(", ")),
    tone === "bad" ? el("span", "under bad", cache.problem) : null);
}

function renderSettings(all, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (one) => words.every((word) => `${one.name} ${one.value} ${one.origin} ${one.section}`.toLowerCase().includes(word));
  const found = words.length ? all.filter(matches) : all.filter((one) => !one.isDefault);
  show(byId("filtered"), words.length ? `${found.length} of ${all.length}` : `${found.length} of ${all.length} settings are set`);
  list(byId("settings").querySelector(".rows"), found, (one) => one.name, (one) =>
    el("li", "", el("span", "mono", one.name), el("span", "mono", one.value === "" ? '""' : one.value),
      el("span", "under quiet", one.isDefault ? "the default" : `set by ${one.origin}`)));
}
