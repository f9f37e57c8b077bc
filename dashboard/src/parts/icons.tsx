// Icons as 16 × 16 paths in the text colour.

const PATHS: Record<string, string> = {
  logo: "M3.5 4l9 4M3.5 12l9-4M3.5 4v8",
  menu: "M2 4h12M2 8h12M2 12h12",
  sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6L13 13M13 3l-1.4 1.4M4.4 11.6L3 13",
  moon: "M13 9.5A5.5 5.5 0 016.5 3 5.5 5.5 0 108 13.9 5.5 5.5 0 0013 9.5z",
  auto: "M8 2a6 6 0 100 12A6 6 0 008 2zM8 2v12M10 4v8M12 5.5v5",
  overview: "M2 3h5v4H2zM9 9h5v4H9zM7 5h4v4",
  topics: "M2 4h12M2 8h12M2 12h7",
  plots: "M2 2v12h12M4 10l3-4 3 2 4-5",
  transforms: "M4 12V4M4 12h8M4 12l5-4M4 4l-1.5 2M4 4l1.5 2",
  nodes: "M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 9.5h4v4h-4z",
  problems: "M8 2l6.5 11.5h-13zM8 6.5v3.5M8 11.7v.3",
  logs: "M3 2h7l3 3v9H3zM5.5 7h5M5.5 10h5",
  commands: "M8 1.5v4M8 10.5v4M1.5 8h4M10.5 8h4M8 6.5a1.5 1.5 0 100 3 1.5 1.5 0 000-3z",
  params: "M2 4h6M12 4h2M10 2.5v3M2 8h2M8 8h6M6 6.5v3M2 12h7M13 12h1M11 10.5v3",
  state: "M3 2v11h4M3 7h4M9 5.5h4v3H9zM9 11.5h4v3H9z",
  services: "M2 5h10l-3-3M14 11H4l3 3",
  record: "M8 3a5 5 0 100 10A5 5 0 008 3zM8 6.2a1.8 1.8 0 100 3.6 1.8 1.8 0 000-3.6z",
  launch: "M5 3l8 5-8 5z",
  hosts: "M2 3h12v7H2zM6 13h4M8 10v3",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  close: "M4 4l8 8M12 4l-8 8",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name] ?? ""} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
