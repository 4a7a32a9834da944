#include "cli/run_iket/perfetto_page.h"

#include <cctype>

namespace iket::cli::run_iket {
namespace {

constexpr std::string_view kBeforeName = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>)html";

constexpr std::string_view kBetweenNames = R"html(</title>
<style>
  html, body { margin: 0; height: 100%; font: 16px/1.5 sans-serif; }
  iframe { border: 0; width: 100%; height: 100%; display: block; }
  #ask { padding: 2em; max-width: 45em; }
  [hidden] { display: none; }
</style>
<body data-trace=")html";

constexpr std::string_view kAfterNames = R"html(">
<div id="ask">
  <p id="said">Loading the trace ...</p>
  <p id="choice" hidden><input id="file" type="file"></p>
</div>
<iframe id="perfetto" hidden></iframe>
<script>
'use strict';
const kPerfetto = 'https://ui.perfetto.dev';
const kPatience = 20000;  // milliseconds until Perfetto's page must have answered
const name = document.body.dataset.trace;
const element = (id) => document.getElementById(id);

function say(text) {
  element('said').textContent = text;
  element('ask').hidden = false;
  element('perfetto').hidden = true;
}

// Perfetto's page answers PING with PONG once it can take a trace.
function show(buffer) {
  const frame = element('perfetto');
  frame.src = kPerfetto;
  say('Waiting for ' + kPerfetto + ' ...');
  element('choice').hidden = true;
  const ping = setInterval(() => frame.contentWindow.postMessage('PING', kPerfetto), 100);
  const late = setTimeout(() => {
    clearInterval(ping);
    say(kPerfetto + ' does not answer. With a network, reload this page; or open ' + name +
        ' in another viewer of Perfetto traces.');
  }, kPatience);
  addEventListener('message', function ready(message) {
    if (message.source !== frame.contentWindow || message.origin !== kPerfetto) return;
    if (message.data !== 'PONG') return;
    removeEventListener('message', ready);
    clearInterval(ping);
    clearTimeout(late);
    element('ask').hidden = true;
    frame.hidden = false;
    frame.contentWindow.postMessage({perfetto: {buffer, title: name, fileName: name}}, kPerfetto);
  });
}

element('file').addEventListener('change', async (event) => {
  if (event.target.files.length > 0) show(await event.target.files[0].arrayBuffer());
});

(async () => {
  try {
    const answer = await fetch(encodeURIComponent(name));
    if (!answer.ok) throw new Error(answer.status + ' ' + answer.statusText);
    show(await answer.arrayBuffer());
  } catch (error) {
    const disk = location.protocol === 'file:';
    say((disk ? 'Browsers do not let a page from a disk read ' + name + '.'
              : name + ' cannot be loaded: ' + error.message + '.') +
        ' Choose it here:');
    element('choice').hidden = false;
  }
})();
</script>
</html>
)html";

// For text and for values of attributes: what is no plain character of a file's name as a number.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '-') {
      escaped += c;
    } else {
      escaped += "&#" + std::to_string(byte) + ";";
    }
  }
  return escaped;
}

}  // namespace

std::string PerfettoPage(std::string_view trace) {
  const std::string name = Escaped(trace);
  std::string page(kBeforeName);
  page += name;
  page += kBetweenNames;
  page += name;
  page += kAfterNames;
  return page;
}

}  // namespace iket::cli::run_iket
