// main.ts: hands the trace that `iket view --perfetto` serves to Perfetto's own page, in this browser:
// window.open, PING until PONG, then one message with the bytes, as Perfetto documents it (Deep linking to the
// Perfetto UI). Nothing is uploaded: that page has no server that takes traces.
export {};

const UI = 'https://ui.perfetto.dev';
const PING_MS = 100;
const PATIENCE_MS = 60_000;

function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page lacks ${id}`);
  return element;
}
const say = (text: string) => { byId('status').textContent = text; };

interface Trace { name: string; buffer: ArrayBuffer; }

async function fetchTrace(): Promise<Trace> {
  const answer = await fetch('trace');
  if (!answer.ok) throw new Error(`iket view answers ${answer.status}`);
  const name = /filename\*=UTF-8''([^;]*)/.exec(answer.headers.get('Content-Disposition') ?? '');
  return {name: name ? decodeURIComponent(name[1]) : 'trace.pftrace', buffer: await answer.arrayBuffer()};
}

// Until the window answers; what it is sent before it listens is lost.
function ready(ui: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const stop = (then: () => void) => {
      clearInterval(timer);
      removeEventListener('message', listen);
      then();
    };
    const listen = (message: MessageEvent) => {
      if (message.source === ui && message.origin === UI && message.data === 'PONG') stop(resolve);
    };
    const ping = () => {
      if (ui.closed) return stop(() => reject(new Error('the window was closed')));
      if (performance.now() - began > PATIENCE_MS) {
        return stop(() => reject(new Error(`${UI} does not answer: has this browser a network?`)));
      }
      ui.postMessage('PING', UI);
    };
    addEventListener('message', listen);
    const timer = setInterval(ping, PING_MS);
  });
}

async function show(): Promise<void> {
  // First, within the click: browsers open no window later.
  const ui = window.open(UI);
  if (!ui) return say('The browser did not open a window: allow it for this page, and click again.');
  say('Reading the trace ...');
  const {name, buffer} = await fetchTrace();
  say(`Waiting for ${UI} ...`);
  await ready(ui);
  ui.postMessage({perfetto: {buffer, title: name, fileName: name}}, UI, [buffer]);
  say(`${name} is in the other window.`);
}

byId('open').addEventListener('click', () => {
  show().catch((error: unknown) => say(`Not opened: ${error instanceof Error ? error.message : String(error)}`));
});
