#include "sim/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <limits>
#include <list>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "sim/cta.h"
#include "sim/print_fifo.h"
#include "sim/sm.h"

namespace iket::sim {
namespace {

// SMs of one host thread take turns of so many cycles.
constexpr uint64_t kTurnCycles = 2000;

// What a kernel of sm_90 finds in c[0] below its parameters.
constexpr uint32_t kNtid = 0x0, kNctaid = 0xc, kLocalBase = 0x20, kStack = 0x28, kGridId = 0x30,
                   kEnvironment1 = 0x44;
constexpr uint32_t kClusterDim = 0x144, kPerClusterDim = 0x150;  // CTAs; 1 / CTAs as floats
constexpr uint32_t kReservedEnd = 0x68, kConstantWindow = 0xd0, kNsmid = 0x10c,
                   kClusterCtas = 0x188;

void Put(std::vector<std::byte>& bytes, uint32_t offset, uint32_t value) {
  if (offset + 4 <= bytes.size()) std::memcpy(bytes.data() + offset, &value, sizeof value);
}

uint32_t RoundUp(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

}  // namespace

const char* FaultKindName(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kIllegalAddress:
      return "illegal address";
    case Fault::Kind::kMisaligned:
      return "misaligned address";
    case Fault::Kind::kWrongSpace:
      return "address of another space";
    case Fault::Kind::kStackOverflow:
      return "stack overflow";
    case Fault::Kind::kIllegalInstruction:
      return "illegal instruction";
    case Fault::Kind::kInvalidPc:
      return "invalid program counter";
    case Fault::Kind::kUnsupported:
      return "unsupported instruction";
    case Fault::Kind::kTrap:
      return "trap";
    case Fault::Kind::kAssert:
      return "assertion";
    case Fault::Kind::kDeadlock:
      return "deadlock";
    case Fault::Kind::kTimeout:
      return "timeout";
    case Fault::Kind::kStopped:
      return "stopped";
    case Fault::Kind::kBadLaunch:
      return "bad launch";
  }
  return "fault";
}

// What the CTAs of a cooperative launch synchronize by: device memory whose address the driver puts
// into %envreg1 (its high half) and %envreg2. cooperative_groups finds in it a size and a counter
// that starts at 0; a launch that is not cooperative has none, and grid.sync() traps.
class GridWorkspace {
 public:
  explicit GridWorkspace(AddressSpace& space) : space_(space) {}
  GridWorkspace(const GridWorkspace&) = delete;
  GridWorkspace& operator=(const GridWorkspace&) = delete;
  ~GridWorkspace() {
    if (address_ == 0) return;
    (void)space_.Unmap(address_, kBytes);
    (void)space_.Release(address_);
  }

  Result<uint64_t> Allocate() {
    auto memory = AllocateHostMemory(kBytes);
    if (!memory) return tl::unexpected(memory.error());
    auto address = space_.Reserve(kBytes, kBytes);
    if (!address) return address;
    if (auto mapped = space_.Map(*address, kBytes, *memory); !mapped) {
      (void)space_.Release(*address);
      return tl::unexpected(mapped.error());
    }
    address_ = *address;
    std::memcpy(memory->get(), &kUsed, sizeof kUsed);
    return address_;
  }

 private:
  static constexpr uint64_t kBytes = 256;
  static constexpr uint32_t kUsed = 8;
  AddressSpace& space_;
  uint64_t address_ = 0;
};

class Machine::Impl {
 public:
  Impl(const DeviceModel& device, AddressSpace& addresses, MachineOptions wanted)
      : model(device), space(addresses), options(std::move(wanted)) {
    if (!options.print) {
      options.print = [](std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stdout);
      };
    }
    for (uint32_t i = 0; i < model.sm_count; ++i) {
      sms.push_back(std::make_unique<Sm>(model, space, i));
    }
    uint32_t count = options.host_threads;
    if (count == 0) count = std::max(1u, std::thread::hardware_concurrency());
    count = std::min(count, model.sm_count);
    workers.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t s = i; s < model.sm_count; s += count) workers[i].sms.push_back(s);
      workers[i].thread = std::thread([this, i] { Work(i); });
    }
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      quit = true;
    }
    work.notify_all();
    for (Worker& worker : workers) worker.thread.join();
  }

  struct Worker {
    std::thread thread;
    std::vector<uint32_t> sms;
  };
  struct Entry {
    std::shared_ptr<Launch> launch;
    bool done = false;
  };

  std::optional<Fault> Run(const LaunchConfig& config, const std::stop_token& stop,
                           LaunchStatistics* statistics);
  void Work(uint32_t number);
  // With the mutex held: gives the CTAs of waiting launches to SMs with room.
  void Dispatch();
  void Finish(std::vector<std::unique_ptr<Cta>>& ended);
  void RaiseNow(uint64_t cycles) {
    uint64_t latest = now.load(std::memory_order_relaxed);
    while (latest < cycles && !now.compare_exchange_weak(latest, cycles)) {
    }
  }
  uint32_t Registers(const Kernel& kernel, uint64_t threads) const {
    const uint32_t a_warp = RoundUp(std::max(kernel.registers, 16u) * kLanes, 256);
    return a_warp * static_cast<uint32_t>((threads + kLanes - 1) / kLanes);
  }
  uint32_t SharedBytes(const Kernel& kernel, uint32_t dynamic) const {
    return model.reserved_shared_bytes_per_cta + RoundUp(kernel.static_shared + dynamic, 128);
  }
  uint32_t CtasPerSm(const Kernel& kernel, uint64_t threads, uint32_t dynamic_shared) const {
    return std::min(
        {model.max_warps_per_sm / static_cast<uint32_t>((threads + kLanes - 1) / kLanes),
         model.registers_per_sm / Registers(kernel, threads),
         model.shared_bytes_per_sm / SharedBytes(kernel, dynamic_shared), model.max_ctas_per_sm});
  }
  std::optional<std::string> Refuse(const LaunchConfig& config) const;

  const DeviceModel model;
  AddressSpace& space;
  MachineOptions options;
  std::vector<std::unique_ptr<Sm>> sms;
  std::vector<Worker> workers;

  std::mutex mutex;  // guards what follows, and the inboxes
  std::condition_variable work;
  std::condition_variable finished;
  std::list<std::shared_ptr<Launch>> launches;  // with CTAs not yet given to a SM
  // CTAs given to a SM that its thread has not placed yet, and what is resident by the
  // dispatcher's count.
  struct Room {
    std::vector<std::unique_ptr<Cta>> inbox;
    uint32_t warps = 0, registers = 0, shared = 0, ctas = 0;
  };
  std::vector<Room> rooms{std::vector<Room>(model.sm_count)};
  bool quit = false;
  std::atomic<uint64_t> now{0};  // cycles: the latest end of a turn
};

std::optional<std::string> Machine::Impl::Refuse(const LaunchConfig& config) const {
  const Kernel& kernel = *config.kernel;
  const uint64_t threads = config.block.count();
  if (config.grid.count() == 0 || threads == 0) return "an empty grid or block";
  if (config.block.x > 1024 || config.block.y > 1024 || config.block.z > 64 || threads > 1024) {
    return fmt::format("a block of {} threads", threads);
  }
  if (threads > kernel.max_threads) {
    return fmt::format("a block of {} threads; the kernel was compiled for {}", threads,
                       kernel.max_threads);
  }
  if (config.grid.x > 0x7fffffffu || config.grid.y > 65535 || config.grid.z > 65535) {
    return fmt::format("a grid of {} x {} x {}", config.grid.x, config.grid.y, config.grid.z);
  }
  if (SharedBytes(kernel, config.dynamic_shared) > model.shared_bytes_per_sm) {
    return fmt::format("{} bytes of shared memory", kernel.static_shared + config.dynamic_shared);
  }
  if (Registers(kernel, threads) > model.registers_per_sm) {
    return fmt::format("{} registers for each of {} threads", kernel.registers, threads);
  }
  return std::nullopt;
}

std::optional<Fault> Machine::Impl::Run(const LaunchConfig& config, const std::stop_token& stop,
                                        LaunchStatistics* statistics) {
  const Kernel& kernel = *config.kernel;
  if (auto why = Refuse(config)) {
    return Fault{.kind = Fault::Kind::kBadLaunch,
                 .message = fmt::format("{}: cannot launch {}", kernel.name, *why),
                 .kernel = kernel.name};
  }
  auto launch = std::make_shared<Launch>();
  PrintFifo printed(config.printf_bytes);
  launch->kernel = &kernel;
  launch->image = kernel.image;
  launch->code_base = kernel.image->code_base();
  launch->model = &model;
  launch->space = &space;
  launch->heap = config.heap;
  launch->printed = &printed;
  launch->grid = config.grid;
  launch->block = config.block;
  launch->threads = static_cast<uint32_t>(config.block.count());
  launch->warps = (launch->threads + kLanes - 1) / kLanes;
  launch->shared_bytes = SharedBytes(kernel, config.dynamic_shared);
  launch->local_bytes = RoundUp(std::max(kernel.local_bytes, config.stack_bytes), 16);
  launch->registers = Registers(kernel, launch->threads);
  launch->grid_id = config.grid_id;
  launch->left = config.grid.count();

  auto& c0 = launch->constants0;
  c0.resize(kernel.param_base + std::max<size_t>(kernel.param_bytes, config.params.size()));
  if (!config.params.empty()) {
    std::memcpy(c0.data() + kernel.param_base, config.params.data(), config.params.size());
  }
  Put(c0, kNtid, config.block.x);
  Put(c0, kNtid + 4, config.block.y);
  Put(c0, kNtid + 8, config.block.z);
  Put(c0, kNctaid, config.grid.x);
  Put(c0, kNctaid + 4, config.grid.y);
  Put(c0, kNctaid + 8, config.grid.z);
  Put(c0, kLocalBase, static_cast<uint32_t>(kLocalWindow));
  Put(c0, kLocalBase + 4, static_cast<uint32_t>(kLocalWindow >> 32));
  Put(c0, kStack, launch->local_bytes);
  Put(c0, kGridId, static_cast<uint32_t>(config.grid_id));
  Put(c0, kReservedEnd, 0x120);
  Put(c0, kNsmid, model.sm_count);
  Put(c0, kClusterCtas, 1);
  for (uint32_t axis = 0; axis < 3; ++axis) {
    Put(c0, kClusterDim + 4 * axis, 1);
    Put(c0, kPerClusterDim + 4 * axis, std::bit_cast<uint32_t>(1.0f));
  }
  // Where a generic pointer finds the constants of the module.
  const uint64_t constants = kernel.image->ConstantAddress(3);
  Put(c0, kConstantWindow, static_cast<uint32_t>(constants));
  Put(c0, kConstantWindow + 4, static_cast<uint32_t>(constants >> 32));

  GridWorkspace workspace(space);
  if (config.cooperative) {
    const uint64_t fit =
        uint64_t{model.sm_count} * CtasPerSm(kernel, launch->threads, config.dynamic_shared);
    if (config.grid.count() > fit) {
      return Fault{.kind = Fault::Kind::kBadLaunch,
                   .message = fmt::format("{}: {} CTAs of a cooperative launch, {} fit at once",
                                          kernel.name, config.grid.count(), fit),
                   .kernel = kernel.name};
    }
    auto address = workspace.Allocate();
    if (!address) {
      return Fault{.kind = Fault::Kind::kBadLaunch,
                   .message = fmt::format("{}: {}", kernel.name, address.error().message),
                   .kernel = kernel.name};
    }
    Put(c0, kEnvironment1, static_cast<uint32_t>(*address >> 32));
    Put(c0, kEnvironment1 + 4, static_cast<uint32_t>(*address));
  }

  const std::stop_callback on_stop(stop, [&] {
    launch->Fail(Fault{.kind = Fault::Kind::kStopped,
                       .message = fmt::format("{}: stopped", kernel.name),
                       .kernel = kernel.name});
    const std::lock_guard lock(mutex);
    work.notify_all();
  });
  std::unique_lock lock(mutex);
  launch->start_time = now.load();
  launch->end_time = launch->start_time;
  launches.push_back(launch);
  Dispatch();
  work.notify_all();
  finished.wait(lock, [&] { return launch->left == 0; });
  lock.unlock();
  const PrintFifo::Contents contents = printed.Take();
  for (const std::string& text : contents.texts) options.print(text);
  if (statistics != nullptr) {
    statistics->printf_overwritten = contents.overwritten;
    statistics->warp_instructions = launch->instructions;
    statistics->cycles = launch->end_time - launch->start_time;
  }
  return launch->fault;
}

void Machine::Impl::Dispatch() {
  for (auto it = launches.begin(); it != launches.end();) {
    Launch& launch = **it;
    const uint64_t all = launch.grid.count();
    if (launch.stop.load(std::memory_order_relaxed)) {
      launch.left -= all - launch.next_cta;
      launch.next_cta = all;
      if (launch.left == 0) finished.notify_all();
    }
    while (launch.next_cta < all) {
      // The SM with the fewest CTAs of those that have room; the first of several.
      uint32_t best = model.sm_count;
      for (uint32_t s = 0; s < model.sm_count; ++s) {
        const Room& room = rooms[s];
        if (room.warps + launch.warps > model.max_warps_per_sm ||
            room.registers + launch.registers > model.registers_per_sm ||
            room.shared + launch.shared_bytes > model.shared_bytes_per_sm ||
            room.ctas >= model.max_ctas_per_sm) {
          continue;
        }
        if (best == model.sm_count || room.ctas < rooms[best].ctas) best = s;
      }
      if (best == model.sm_count) break;
      std::unique_ptr<Cta> cta;
      try {
        cta = std::make_unique<Cta>();
        rooms[best].inbox.reserve(rooms[best].inbox.size() + 1);
      } catch (const std::bad_alloc&) {
        launch.Fail(Fault::NoHostMemory());
        launch.left -= all - launch.next_cta;
        launch.next_cta = all;
        if (launch.left == 0) finished.notify_all();
        break;
      }
      cta->launch = &launch;
      cta->owner = *it;
      cta->index = launch.next_cta++;
      cta->id[0] = static_cast<uint32_t>(cta->index % launch.grid.x);
      cta->id[1] = static_cast<uint32_t>(cta->index / launch.grid.x % launch.grid.y);
      cta->id[2] = static_cast<uint32_t>(cta->index / launch.grid.x / launch.grid.y);
      Room& room = rooms[best];
      room.warps += launch.warps;
      room.registers += launch.registers;
      room.shared += launch.shared_bytes;
      ++room.ctas;
      room.inbox.push_back(std::move(cta));
    }
    if (launch.next_cta == all) {
      it = launches.erase(it);
    } else {
      return;  // later launches wait their turn
    }
  }
}

void Machine::Impl::Finish(std::vector<std::unique_ptr<Cta>>& ended) {
  if (ended.empty()) return;
  const std::lock_guard lock(mutex);
  for (const auto& cta : ended) {
    Room& room = rooms[cta->sm->number];
    const Launch& launch = *cta->launch;
    room.warps -= launch.warps;
    room.registers -= launch.registers;
    room.shared -= launch.shared_bytes;
    --room.ctas;
    if (--cta->launch->left == 0) finished.notify_all();
  }
  ended.clear();
  Dispatch();
  work.notify_all();
}

void Machine::Impl::Work(uint32_t number) {
  std::vector<uint32_t>& mine = workers[number].sms;
  std::vector<std::unique_ptr<Cta>> ended;
  std::vector<std::unique_ptr<Cta>> arrived;
  uint64_t idle_turns = 0;
  for (;;) {
    bool busy = false;
    {
      std::unique_lock lock(mutex);
      for (;;) {
        if (quit) return;
        bool any = false;
        for (const uint32_t s : mine) {
          for (auto& cta : rooms[s].inbox) {
            cta->sm = sms[s].get();
            arrived.push_back(std::move(cta));
          }
          rooms[s].inbox.clear();
          any |= !sms[s]->empty();
        }
        if (any || !arrived.empty()) break;
        work.wait(lock);
      }
    }
    for (auto& cta : arrived) {
      Sm& sm = *cta->sm;
      const uint64_t start = cta->launch->start_time;
      sm.Place(std::move(cta), start);
    }
    arrived.clear();
    // One turn: all SMs up to the same moment, the ones that lag first.
    uint64_t until = std::numeric_limits<uint64_t>::max();
    for (const uint32_t s : mine) {
      if (!sms[s]->empty()) until = std::min(until, sms[s]->time);
    }
    until += kTurnCycles;
    for (const uint32_t s : mine) {
      Sm& sm = *sms[s];
      while (!sm.empty() && sm.time < until) {
        const bool ran = sm.Run(until, ended);
        busy |= ran;
        if (!ended.empty()) {
          busy = true;
          // What waits for these launches starts no earlier than they ended.
          RaiseNow(sm.time);
          Finish(ended);
          const std::lock_guard lock(mutex);
          for (auto& cta : rooms[s].inbox) {
            const uint64_t start = cta->launch->start_time;
            sm.Place(std::move(cta), start);
          }
          rooms[s].inbox.clear();
        } else if (!ran) {
          break;
        }
      }
      RaiseNow(sm.time);
    }
    // Nothing can run here: either another SM's turn changes that, or nothing ever will.
    idle_turns = busy ? 0 : idle_turns + 1;
    if (idle_turns > 64) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Machine::Machine(const DeviceModel& model, AddressSpace& space, MachineOptions options)
    : impl_(std::make_unique<Impl>(model, space, std::move(options))) {}
Machine::~Machine() = default;

std::optional<Fault> Machine::Run(const LaunchConfig& launch, const std::stop_token& stop,
                                  LaunchStatistics* statistics) {
  return impl_->Run(launch, stop, statistics);
}

uint32_t Machine::MaxCtasPerSm(const Kernel& kernel, uint64_t threads,
                               uint32_t dynamic_shared) const {
  if (threads == 0 || threads > kernel.max_threads) return 0;
  return impl_->CtasPerSm(kernel, threads, dynamic_shared);
}

const DeviceModel& Machine::model() const { return impl_->model; }

uint64_t Machine::TimeNs() const { return impl_->now.load() * 1000000 / impl_->model.clock_khz; }

}  // namespace iket::sim
