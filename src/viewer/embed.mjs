// embed.mjs OUT.cpp HEADER.h PAGE.html STYLE.css SCRIPT.js POLICY NAME...: a page as C++ strings, with the
// hashes of its script and style, and POLICY, in its Content-Security-Policy. Where it has {{data}} in it, it
// is the strings of two names, before and after.
import {createHash} from 'crypto';
import {readFileSync, writeFileSync} from 'fs';

const [outFile, header, pageFile, styleFile, scriptFile, morePolicy, ...names] = process.argv.slice(2);
const page = readFileSync(pageFile, 'utf8');
const style = readFileSync(styleFile, 'utf8');
const script = readFileSync(scriptFile, 'utf8').trim();
if (/<\/script|<!--/i.test(script)) throw new Error('the script would end its own element');
if (/<\/style/i.test(style)) throw new Error('the style would end its own element');

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
    `img-src data:; base-uri 'none'; form-action 'none'${morePolicy ? `; ${morePolicy}` : ''}`;
const parts = {'{{policy}}': policy, '{{style}}': style, '{{script}}': script};
const whole = page.replace(/\{\{(policy|style|script)\}\}/g, (found) => parts[found]);
const pieces = whole.split('{{data}}');
if (pieces.length !== names.length) throw new Error(`${pageFile}: ${pieces.length} pieces, ${names.length} names`);

// Numbers of bytes, not literals: no limit of a compiler's on a string's length is near.
function definition(name, text) {
  const bytes = Buffer.from(text, 'utf8');
  const rows = [];
  for (let at = 0; at < bytes.length; at += 32) rows.push(bytes.subarray(at, at + 32).join(','));
  return `constexpr unsigned char ${name}Bytes[] = {\n${rows.join(',\n')}};\n` +
      `const std::string_view ${name}(reinterpret_cast<const char*>(${name}Bytes), ` +
      `sizeof ${name}Bytes);\n`;
}
writeFileSync(outFile, `// Made by embed.mjs.
#include "${header}"

namespace iket::viewer {
${names.map((name, i) => definition(name, pieces[i])).join('')}}  // namespace iket::viewer
`);
