// The frame of the page: its permanent parts, and the current view.

import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { DomainContext, useDomainSource } from "./domain";
import { Header } from "./parts/header";
import { Nav } from "./parts/nav";
import { NotConnected } from "./parts/not_connected";
import { usePlace } from "./router";
import { useConnectionState } from "./wire/use";
import { wire } from "./wire/socket";
import { Commands } from "./views/commands";
import { Hosts } from "./views/hosts";
import { Launch } from "./views/launch";
import { Logs } from "./views/logs";
import { NodePage, Nodes } from "./views/nodes";
import { Overview } from "./views/overview";
import { Params } from "./views/params";
import { Plots } from "./views/plots";
import { Problems } from "./views/problems";
import { Record } from "./views/record";
import { ServicePage, Services } from "./views/services";
import { State } from "./views/state";
import { TopicPage } from "./views/topic";
import { Topics } from "./views/topics";
import { Transforms } from "./views/transforms";

type View = ComponentType<{ name: string }>;

/** Each view, and the page of one of its items. */
const VIEWS: Record<string, { title: string; all: View; one?: View }> = {
  overview: { title: "Overview", all: Overview },
  topics: { title: "Topics", all: Topics, one: TopicPage },
  plots: { title: "Plots", all: Plots },
  transforms: { title: "Transforms", all: Transforms },
  nodes: { title: "Nodes", all: Nodes, one: NodePage },
  problems: { title: "Problems", all: Problems },
  logs: { title: "Logs", all: Logs },
  commands: { title: "Commands", all: Commands },
  params: { title: "Parameters", all: Params },
  state: { title: "State", all: State },
  services: { title: "Services", all: Services, one: ServicePage },
  record: { title: "Recording", all: Record },
  launch: { title: "Launch", all: Launch },
  hosts: { title: "Hosts", all: Hosts },
};

export function App() {
  const domain = useDomainSource();
  const link = useConnectionState();
  const place = usePlace();
  const [menu, set_menu] = useState(false);
  const main = useRef<HTMLElement>(null);
  const known = VIEWS[place.view] ?? VIEWS.overview!;
  const name = place.rest[0] ?? "";
  const Shown = name && known.one ? known.one : known.all;
  const first = useRef(true);

  useEffect(() => {
    set_menu(false);
    // Moves the focus to the new view, for screen readers and the keyboard, instead of the start of the page.
    if (first.current) first.current = false;
    else main.current?.focus({ preventScroll: true });
    main.current?.scrollTo?.(0, 0);
  }, [place.view, name]);

  const problems = domain.figures?.problems.filter((p) => p.level === "problem").length ?? 0;
  useEffect(() => {
    const live = link.is === "open" ? (problems ? `(${problems}) ` : "") : "Not connected – ";
    document.title = `${live}${name || known.title} – robot-net`;
  }, [link.is, problems, name, known.title]);

  const stale = link.is !== "open" || domain.figures === null;
  return (
    <DomainContext.Provider value={domain}>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <Header menu={menu} toggle_menu={() => set_menu(!menu)} />
      <Nav view={place.view in VIEWS ? place.view : "overview"} open={menu} problems={problems} />
      <div class={stale ? "page stale" : "page"}>
        <NotConnected />
        <main id="main" tabIndex={-1} ref={main} aria-label={name || known.title}>
          {wire.hello || domain.figures ? <Shown key={`${place.view}/${name}`} name={name} /> : null}
        </main>
      </div>
    </DomainContext.Provider>
  );
}
