// permalink.ts: what is looked at, in the part of the address behind #, so that a link shows the same.
import {App} from './app';
import {byId} from './text';

export function follow(app: App): void {
  const read = () => {
    const words = new URLSearchParams(location.hash.slice(1));
    const numbers = (words.get('t') ?? '').split('_').map(Number);
    if (words.get('v') === 'roles') {
      app.setRoles(true);
      byId('roles').setAttribute('aria-pressed', 'true');
    }
    const slice = Number(words.get('s') ?? NaN);
    if (Number.isInteger(slice) && slice >= 0 && slice < app.trace.sliceCount) app.select(slice);
    if (numbers.length === 2 && numbers[0] < numbers[1]) app.look(numbers[0], numbers[1]);
  };
  let written = location.hash;
  let waiting = 0;
  read();
  addEventListener('hashchange', () => { if (location.hash !== written) read(); });
  app.onFrame.push(() => {
    clearTimeout(waiting);
    waiting = window.setTimeout(() => {
      const words = [`t=${app.t0.toFixed(1)}_${app.t1.toFixed(1)}`];
      if (app.selected >= 0) words.push(`s=${app.selected}`);
      if (app.roles) words.push('v=roles');
      written = '#' + words.join('&');
      history.replaceState(null, '', written);
    }, 250);
  });
}
