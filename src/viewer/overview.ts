// overview.ts: the strip on top: how busy each SM was over all of the time, and what part is shown.
import {App} from './app';
import {mix, pixel} from './palette';
import {byId} from './text';

export class Overview {
  private readonly canvas = byId<HTMLCanvasElement>('overview');
  private cached: ImageData | null = null;
  private key = '';

  constructor(private readonly app: App) {
    app.onFrame.push(() => this.draw());
    const move = (event: PointerEvent) => {
      const bounds = this.canvas.getBoundingClientRect();
      const [low, high] = app.bounds();
      const at = low + (event.clientX - bounds.left) / bounds.width * (high - low);
      const half = (app.t1 - app.t0) / 2;
      app.look(at - half, at + half);
    };
    this.canvas.addEventListener('pointerdown', (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    this.canvas.addEventListener('pointermove', (event) => { if (event.buttons !== 0) move(event); });
  }

  // A line an SM, darker the more of its warps there are at a time.
  private load(width: number, height: number): ImageData {
    const {trace, dark} = this.app;
    const [low, high] = this.app.bounds();
    const image = new ImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const sms = [...new Set(trace.sm)].sort((a, b) => a - b);
    const place = new Map(sms.map((sm, i) => [sm, i]));
    const steps = new Float64Array(sms.length * (width + 1));
    const scale = width / (high - low);
    for (let warp = 0; warp < this.app.placedWarps; ++warp) {
      const base = place.get(trace.sm[warp])! * (width + 1);
      const shift = this.app.roles ? trace.launch(warp).first : 0;
      const x0 = Math.max(0, Math.min(width - 1, Math.floor((trace.warpBegin[warp] - shift - low) * scale)));
      const x1 = Math.max(x0 + 1, Math.min(width, Math.ceil((trace.warpEnd[warp] - shift - low) * scale)));
      steps[base + x0] += trace.alive[warp];
      steps[base + x1] -= trace.alive[warp];
    }
    let most = 1;
    for (let sm = 0; sm < sms.length; ++sm) {
      for (let x = 0, alive = 0; x < width; ++x) {
        alive += steps[sm * (width + 1) + x];
        steps[sm * (width + 1) + x] = alive;
        most = Math.max(most, alive);
      }
    }
    const none = dark ? 0x161b22 : 0xf6f7f9;
    const full = dark ? 0x6cb6ff : 0x0b62b8;
    const shades = Array.from({length: 17}, (_, i) => pixel(i === 0 ? none : mix(none, full, 0.2 + 0.8 * i / 16)));
    for (let y = 0; y < height; ++y) {
      const sm = Math.min(sms.length - 1, Math.floor(y * sms.length / height));
      for (let x = 0; x < width; ++x) {
        const alive = sms.length ? steps[sm * (width + 1) + x] : 0;
        pixels[y * width + x] = shades[Math.max(0, Math.ceil(alive / most * 16 - 1e-9))];
      }
    }
    return image;
  }

  private draw(): void {
    const {app, canvas} = this;
    const ratio = devicePixelRatio || 1;
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    const key = `${width} ${height} ${app.dark} ${app.roles}`;
    if (key !== this.key) {
      this.key = key;
      canvas.width = width;
      canvas.height = height;
      this.cached = this.load(width, height);
    }
    const context = canvas.getContext('2d')!;
    context.putImageData(this.cached!, 0, 0);
    const [low, high] = app.bounds();
    const x0 = (app.t0 - low) / (high - low) * width;
    const x1 = (app.t1 - low) / (high - low) * width;
    context.fillStyle = app.dark ? 'rgba(0,0,0,.55)' : 'rgba(255,255,255,.6)';
    context.fillRect(0, 0, x0, height);
    context.fillRect(x1, 0, width - x1, height);
    context.strokeStyle = app.dark ? '#dfe5ec' : '#1c2430';
    context.lineWidth = ratio;
    context.strokeRect(Math.max(0.5, x0), 0.5, Math.max(2, Math.min(width, x1) - Math.max(0, x0)) - 1, height - 1);
  }
}
