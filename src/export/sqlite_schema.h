// sqlite_schema.h: the tables of a .sqlite export. docs/export.md says what each column means;
// `iket check` wants exactly these.
//
// Version 1 stands in PRAGMA user_version: whoever changes a table or a view raises it.
#pragma once

#include <string_view>

namespace iket::exporter {

inline constexpr int kSqliteVersion = 1;
inline constexpr int kSqliteApplication = 0x494b4554;  // "IKET", PRAGMA application_id

// What is filled row by row; keys of other tables are their ids. Times in ns are whole ones since
// capture.origin_ns, cycles those of the warp's SM.
inline constexpr std::string_view kSqliteTables = R"(
CREATE TABLE capture (
  process_id INTEGER NOT NULL, host TEXT NOT NULL, command TEXT NOT NULL,
  origin_ns INTEGER NOT NULL, read_ns INTEGER, simulated INTEGER NOT NULL,
  filter TEXT, damage TEXT);
CREATE TABLE device (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, uuid TEXT NOT NULL, cuda_index INTEGER NOT NULL,
  sm_count INTEGER NOT NULL, compute_major INTEGER NOT NULL, compute_minor INTEGER NOT NULL,
  sm_clock_max_khz INTEGER, simulated INTEGER NOT NULL);
CREATE TABLE sm (
  device INTEGER NOT NULL REFERENCES device, sm INTEGER NOT NULL, gpc INTEGER, tpc INTEGER,
  ghz REAL, clock_pairs INTEGER NOT NULL, clock_outliers INTEGER NOT NULL,
  residual_max_ns REAL, residual_rms_ns REAL,
  PRIMARY KEY (device, sm)) WITHOUT ROWID;
CREATE TABLE kernel (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, mangled TEXT NOT NULL, demangled TEXT NOT NULL,
  refusal TEXT, left_out INTEGER NOT NULL);
CREATE TABLE declaration (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, category TEXT, "group" TEXT,
  lane TEXT, file TEXT, line INTEGER, colour INTEGER);
CREATE TABLE launch (
  id INTEGER PRIMARY KEY, number INTEGER, kernel INTEGER REFERENCES kernel,
  device INTEGER NOT NULL REFERENCES device, context INTEGER NOT NULL, grid_id INTEGER NOT NULL,
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER,
  block_z INTEGER, cluster_x INTEGER, cluster_y INTEGER, cluster_z INTEGER,
  shared_bytes INTEGER, stream INTEGER, host_ns INTEGER, graph INTEGER, node INTEGER,
  replay INTEGER, completeness TEXT NOT NULL, warps_expected INTEGER, warps INTEGER NOT NULL,
  events INTEGER NOT NULL, lost_at_most INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE warp (
  id INTEGER PRIMARY KEY, launch INTEGER NOT NULL REFERENCES launch, cluster_x INTEGER,
  cluster_y INTEGER, cluster_z INTEGER, cta_x INTEGER, cta_y INTEGER, cta_z INTEGER,
  warp INTEGER, sm INTEGER NOT NULL, slot INTEGER, state TEXT NOT NULL,
  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  start_cycles INTEGER NOT NULL, end_cycles INTEGER NOT NULL);
CREATE TABLE slice (
  id INTEGER PRIMARY KEY, warp INTEGER NOT NULL REFERENCES warp,
  declaration INTEGER NOT NULL REFERENCES declaration, depth INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, start_cycles INTEGER NOT NULL,
  end_cycles INTEGER NOT NULL, closed INTEGER NOT NULL, crossed INTEGER NOT NULL,
  token INTEGER NOT NULL, cut INTEGER NOT NULL, start_event INTEGER NOT NULL, end_event INTEGER);
CREATE TABLE instant (
  event INTEGER PRIMARY KEY, warp INTEGER NOT NULL REFERENCES warp,
  declaration INTEGER NOT NULL REFERENCES declaration, kind TEXT NOT NULL, ns INTEGER NOT NULL,
  cycles INTEGER NOT NULL);
CREATE TABLE value (
  event INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
  value, PRIMARY KEY (event, position)) WITHOUT ROWID;
CREATE TABLE flow (
  source INTEGER NOT NULL REFERENCES instant, target INTEGER NOT NULL REFERENCES instant,
  PRIMARY KEY (target, source)) WITHOUT ROWID;
CREATE TABLE edge (
  id INTEGER PRIMARY KEY, dag TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
  label TEXT NOT NULL, via TEXT NOT NULL);
CREATE TABLE edge_link (
  edge INTEGER NOT NULL REFERENCES edge, source_event INTEGER NOT NULL,
  target_event INTEGER NOT NULL);
CREATE TABLE host_mark (ns INTEGER, host_ns INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE counter (
  name TEXT PRIMARY KEY, value INTEGER NOT NULL, fault INTEGER NOT NULL, meaning TEXT NOT NULL)
  WITHOUT ROWID;
CREATE TABLE health (ns INTEGER NOT NULL, text TEXT NOT NULL);
)";

// Made when the tables are full.
inline constexpr std::string_view kSqliteIndices = R"(
CREATE INDEX warp_launch ON warp (launch);
CREATE INDEX slice_warp ON slice (warp, start_cycles);
CREATE INDEX slice_declaration ON slice (declaration);
CREATE INDEX slice_start ON slice (start_event);
CREATE INDEX slice_end ON slice (end_event);
CREATE INDEX instant_warp ON instant (warp, cycles);
CREATE INDEX instant_declaration ON instant (declaration);
CREATE VIEW slices AS
  SELECT s.id, l.id AS launch_id, l.number AS launch, k.name AS kernel, w.id AS warp_id, w.cta_x,
    w.cta_y, w.cta_z, w.warp, w.sm, w.slot, d.name, d.category, d."group", d.lane, s.depth,
    s.start_ns, s.end_ns, s.end_ns - s.start_ns AS duration_ns, s.start_cycles, s.end_cycles,
    s.end_cycles - s.start_cycles AS duration_cycles, s.closed, s.crossed, s.token, s.cut,
    p.value AS payload, e.value AS end_payload
  FROM slice s JOIN warp w ON w.id = s.warp JOIN launch l ON l.id = w.launch
    JOIN declaration d ON d.id = s.declaration LEFT JOIN kernel k ON k.id = l.kernel
    LEFT JOIN value p ON p.event = s.start_event AND p.position = 0
    LEFT JOIN value e ON e.event = s.end_event AND e.position = 0;
CREATE VIEW instants AS
  SELECT i.event, l.id AS launch_id, l.number AS launch, k.name AS kernel, w.id AS warp_id,
    w.cta_x, w.cta_y, w.cta_z, w.warp, w.sm, w.slot, i.kind, d.name, d.category, d."group",
    d.lane, i.ns, i.cycles, p.value AS payload
  FROM instant i JOIN warp w ON w.id = i.warp JOIN launch l ON l.id = w.launch
    JOIN declaration d ON d.id = i.declaration LEFT JOIN kernel k ON k.id = l.kernel
    LEFT JOIN value p ON p.event = i.event AND p.position = 0;
CREATE VIEW durations AS
  SELECT kernel, name, count(*) AS n, sum(duration_ns) AS total_ns, avg(duration_ns) AS mean_ns,
    min(duration_ns) AS min_ns, max(duration_ns) AS max_ns, avg(duration_cycles) AS mean_cycles
  FROM slices WHERE closed GROUP BY kernel, name;
CREATE VIEW launches AS
  SELECT l.*, k.name AS kernel_name, l.end_ns - l.start_ns AS duration_ns
  FROM launch l LEFT JOIN kernel k ON k.id = l.kernel;
CREATE VIEW flows AS
  SELECT f.source, f.target, a.name, a.warp_id AS source_warp, b.warp_id AS target_warp,
    a.ns AS source_ns, b.ns AS target_ns, b.ns - a.ns AS latency_ns
  FROM flow f JOIN instants a ON a.event = f.source JOIN instants b ON b.event = f.target;
)";

}  // namespace iket::exporter
