// main.ts: starts the page.
import {App} from './app';
import {showNote} from './cells';
import {Headings} from './headings';
import {Input} from './input';
import {Overview} from './overview';
import {Panels} from './panels';
import {follow} from './permalink';
import {byId, plural, short} from './text';
import {Trace, valueText} from './trace';

async function start(): Promise<void> {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  const began = performance.now();
  const trace = await Trace.read();
  const read = performance.now();
  const app = new App(trace);
  trace.took.groups = performance.now() - read;
  app.textOf = valueText;
  showNote(app);
  const panels = new Panels(app);
  new Overview(app);
  new Input(app, panels);
  new Headings(app);
  follow(app);
  app.frame();
  const {head} = trace;
  const what = short(head.command, 80);
  document.title = `${what} - iket`;
  byId('title').textContent = `${what}  ·  ${plural(trace.allWarps, 'warp')}  ·  ${plural(trace.allSlices, 'slice')}`;
  const faults = head.counters.filter((counter) => counter.fault).length + head.refused.length;
  const notices: string[] = [];
  if (head.devices.some((device) => device.simulated)) notices.push('Recorded on a software device: no measurement.');
  if (head.damage) notices.push(head.damage);
  if (head.filter) notices.push(`A part: ${short(head.filter, 300)}.`);
  if (faults > 0) notices.push(`${plural(faults, 'thing')} missing or doubtful: see Trace.`);
  byId('notice').textContent = notices.join('  ');
  byId('notice').hidden = notices.length === 0;
  // For tests and benchmarks: what there is, and how long it took.
  const iket = {app, readyMs: performance.now() - began, took: trace.took};
  (window as unknown as {iket: unknown}).iket = iket;
  document.documentElement.dataset.ready = 'yes';
  await trace.readValues();
  panels.again();
  iket.took.payloads = performance.now() - began - iket.readyMs;
  document.documentElement.dataset.complete = 'yes';
}

start().catch((error: unknown) => {
  byId('notice').hidden = false;
  byId('notice').textContent = `This timeline cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  document.documentElement.dataset.ready = 'failed';
});
