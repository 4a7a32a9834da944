#include "patch/trampoline.h"

#include "patch/cta_selection.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Control;
using sass::Instruction;
using SR = sass::SpecialRegister;
using sass::Width;

constexpr uint8_t kRZ = sass::kRegisterZero;
constexpr int32_t kTable = -static_cast<int32_t>(ring::kTableOffset);

// The ring's slot in SR_VIRTID; the table's stride makes the same bits the offset of its header.
constexpr uint32_t kSlotBits = 0x3f00;
constexpr uint32_t kLaneBits = 0x1f;
static_assert(ring::kHeaderStride == 256 && ring::kSlotsPerSm == 64);
constexpr uint32_t kHeadersPerSm = ring::kSlotsPerSm * ring::kHeaderStride;

// c[0x0]: %gridid.
constexpr uint32_t GridIdConstant(sass::Generation generation) {
  return generation == sass::Generation::kBlackwell ? 0x140 : 0x30;
}
constexpr uint32_t kUserConstantBank = 3;

// Waits for every scoreboard.
constexpr uint8_t kAllBarriers = 0x3f;

constexpr uint8_t Bit(uint8_t barrier) { return static_cast<uint8_t>(1u << barrier); }

// General registers that hold what is going to be stored, the first of each four; `cursor` is the
// first of two that it is loaded to, `header` the offset of the ring's header.
struct Registers {
  uint8_t begin = 8;
  uint8_t identity = 12;
  uint8_t cursor = 10;  // for the time being in the begin record, where the previous end belongs
  uint8_t header = 4;
};

class Entry {
 public:
  Entry(const EntryOptions& options, const Registers& registers)
      : options_(options), r_(registers), generation_(options.generation) {}

  // In one piece. P0 holds in all lanes but the first: a warp starts with that, one store is
  // enough, and 32 cost the memory system as much as they are many.
  std::vector<Instruction> Whole() {
    constexpr uint8_t kOtherLanes = 0;
    const auto store = [this](const Instruction& stg) { Add(stg.WithNegatedGuard(kOtherLanes)); };
    Ask();
    Add(sass::TestImmediate(kOtherLanes, packed_ ? 2 : 1, kLaneBits,
                            {.stall = 1, .wait = Bit(kSlot)}));
    LoadCursor();
    MakeIdentity();
    Add(sass::R2ur(
        generation_, 2, r_.cursor,
        {.stall = 1, .write_barrier = late_r2ur_ ? kSm : sass::kNoBarrier, .wait = Bit(kCursor)}));
    // Behind the load: a store to a sector that is being loaded makes the load wait for it.
    store(StoreHeader());
    // The warp begins when it could have begun without us: what its SM does until here is our cost.
    Add(sass::Cs2r32(r_.begin, SR::kClockLow, {.stall = 1}));
    Add(sass::Cs2r32(static_cast<uint8_t>(r_.begin + 2), SR::kGlobalTimerLow, {.stall = 11}));
    // Both R2UR are 13 cycles away by now, or are waited for.
    MakeRing(late_r2ur_ ? Bit(kSlot) | Bit(kSm) : 0);
    StoreRecords(store);
    return std::move(code_);
  }

  // Up to the kernel's own first instruction.
  std::vector<Instruction> First() {
    Ask();
    LoadCursor();
    MakeIdentity();
    Add(sass::UaddImmediate(generation_, 2, sass::UniformZero(generation_), kPending,
                            {.stall = 1}));
    Add(sass::MovImmediate(Mark(), kPending, {.stall = 1}));
    Add(sass::Cs2r32(r_.begin, SR::kClockLow, {.stall = 1}));
    Add(sass::Cs2r32(static_cast<uint8_t>(r_.begin + 2), SR::kGlobalTimerLow, {.stall = 11}));
    MakeRing(0);
    return std::move(code_);
  }

  // The rest of it, where the cursor is wanted. `predicate` is free.
  std::vector<Instruction> Second(uint8_t predicate, uint32_t* skip) {
    const auto store = [&](const Instruction& stg) { Add(stg.WithGuard(predicate)); };
    Add(sass::TestUniform(predicate, Mark(), 2, {.stall = 13}));
    *skip = static_cast<uint32_t>(code_.size());
    Add(sass::Bra(generation_, 0, 0, {.stall = 5}).WithNegatedGuard(predicate));
    Add(sass::Elect(generation_, predicate, {.stall = 1}));
    Add(sass::R2ur(generation_, 2, r_.cursor, {.stall = 1, .wait = Bit(kCursor)}));
    Add(sass::ImadImmediate(static_cast<uint8_t>(r_.begin + 3), static_cast<uint8_t>(r_.cursor + 1),
                            1, kRZ, {.stall = 12}));
    store(StoreHeader());
    StoreRecords(store);
    return std::move(code_);
  }

 private:
  // Scoreboards. That of the cursor is the one that compilers take last.
  static constexpr uint8_t kSlot = 0, kSm = 1, kWho = 2, kStores = 4, kCursor = 5, kWindow = 3;
  // What UR2 is, in two parts, until the cursor is there: no multiple of a record.
  static constexpr uint32_t kPending = 1;

  void Add(const Instruction& instruction) { code_.push_back(instruction); }
  uint8_t Mark() const { return static_cast<uint8_t>(r_.cursor + 3); }

  // Asks for everything that is not known, as one.
  void Ask() {
    code_ = SelectionCode(options_.filter, generation_);
    const bool selects = !code_.empty();
    const uint8_t x = r_.identity, tid = static_cast<uint8_t>(x + 1),
                  yz = static_cast<uint8_t>(x + 2), grid = static_cast<uint8_t>(x + 3);
    Add(sass::S2r(2, SR::kVirtualId, {.stall = 1, .write_barrier = kSlot}));
    if (!packed_) Add(sass::S2r(1, SR::kLaneId, {.stall = 1, .write_barrier = kSlot}));
    Add(sass::S2r(0, SR::kVirtualSmId, {.stall = 1, .write_barrier = kSm}));
    Add(sass::S2r(x, SR::kCtaIdX, {.stall = 1, .write_barrier = kWho}));
    if (options_.reads_cta_yz) {
      Add(sass::S2r(5, SR::kCtaIdY, {.stall = 1, .write_barrier = kWho}));
      Add(sass::S2r(yz, SR::kCtaIdZ, {.stall = 1, .write_barrier = kWho}));
    } else {
      Add(sass::MovImmediate(yz, 0, {.stall = 1}));
    }
    if (packed_) {
      Add(sass::S2r(tid, SR::kPackedTid, {.stall = 1, .write_barrier = kWho}));
    } else {
      Add(sass::S2r(tid, SR::kTidX, {.stall = 1, .write_barrier = kWho}));
      Add(sass::S2r(6, SR::kTidY, {.stall = 1, .write_barrier = kWho}));
      Add(sass::S2r(7, SR::kTidZ, {.stall = 1, .write_barrier = kWho}));
    }
    Add(sass::LoadConstant(generation_, grid, 0, GridIdConstant(generation_),
                           {.stall = 1, .write_barrier = kWho}));
    Add(sass::LoadUniform64(generation_, 0, kUserConstantBank, options_.constant_offset,
                            {.stall = static_cast<uint8_t>(selects ? 12 : 1),
                             .write_barrier = late_window_ ? kWindow : sass::kNoBarrier}));
    if (selects) {
      Add(sass::UmaskOr(1, 1, ~0u, kSelectionResult,
                        {.stall = kUniformToAddress, .wait = WaitForWindow()}));
    }
    Add(sass::MovImmediate(static_cast<uint8_t>(r_.begin + 1), ring::BeginTag(options_.kernel),
                           {.stall = 1}));
  }

  // From SM and slot.
  void LoadCursor() {
    Add(sass::AndImmediate(2, 2, kSlotBits, {.stall = 5, .wait = Bit(kSlot)}));
    Add(sass::ImadImmediate(r_.header, 0, kHeadersPerSm, 2, {.stall = 5, .wait = Bit(kSm)}));
    Add(sass::Ldg(Width::k64, r_.cursor, r_.header, 0,
                  kTable + static_cast<int32_t>(ring::kHeaderEnd),
                  {.stall = 1, .write_barrier = kCursor, .wait = WaitForWindow()}));
    // Their scoreboards are free again.
    Add(sass::R2ur(generation_, 3, r_.header,
                   {.stall = 1, .write_barrier = late_r2ur_ ? kSlot : sass::kNoBarrier}));
  }

  void MakeIdentity() {
    const uint8_t tid = static_cast<uint8_t>(r_.identity + 1),
                  yz = static_cast<uint8_t>(r_.identity + 2);
    if (options_.reads_cta_yz) {
      Add(sass::ImadImmediate(yz, yz, 1u << 16, 5, {.stall = 1, .wait = Bit(kWho)}));
    }
    if (!packed_) {
      Add(sass::ImadImmediate(tid, 6, 1u << 16, tid, {.stall = 5, .wait = Bit(kWho)}));
      Add(sass::ImadImmediate(tid, 7, 1u << 26, tid, {.stall = 5}));
    }
    Add(sass::OrImmediate(tid, tid, ring::kTagIdentity, {.stall = 5, .wait = Bit(kWho)}));
  }

  void MakeRing(uint8_t wait) {
    Add(sass::UshiftLeft(generation_, 3, 3, options_.layout.header_shift(),
                         {.stall = kUniformToUniform, .wait = wait}));
  }

  // Until the first record UR0:UR1 is the window's base.
  Instruction StoreHeader() const {
    return sass::Stg(Width::k128, r_.header, 0,
                     kTable + static_cast<int32_t>(ring::kHeaderIdentity), r_.identity,
                     {.stall = 1, .read_barrier = kStores});
  }

  template <typename Store>
  void StoreRecords(const Store& store) {
    Add(RingSlot(options_.layout, {.stall = kUniformToAddress}));
    store(sass::StgEvictFirst(Width::k128, kRZ, 0, 0, r_.begin,
                              {.stall = 1, .read_barrier = kStores}));
    Add(AdvanceSlot(generation_, ring::kRecordBytes, {.stall = kUniformToUniform}));
    Add(RingSlot(options_.layout, {.stall = kUniformToAddress}));
    store(sass::StgEvictFirst(Width::k128, kRZ, 0, 0, r_.identity,
                              {.stall = 1, .read_barrier = kStores}));
    // The kernel will write these registers without knowing of the stores.
    Add(AdvanceSlot(generation_, ring::kRecordBytes,
                    {.stall = kUniformToUniform, .wait = Bit(kStores)}));
  }

  uint8_t WaitForWindow() const { return late_window_ ? Bit(kWindow) : 0; }

  const EntryOptions& options_;
  const Registers r_;
  const sass::Generation generation_;
  // What is packed into one special register was seen on an H200 alone.
  const bool packed_ = generation_ == sass::Generation::kHopper;
  const bool late_window_ = sass::HasVariableUniformLoad(generation_);
  const bool late_r2ur_ = sass::HasVariableR2ur(generation_);
  std::vector<Instruction> code_;
};

}  // namespace

std::vector<Instruction> EntryCode(const EntryOptions& options) {
  return Entry(options, {}).Whole();
}

LateEntryCode SplitEntryCode(const EntryOptions& options, const LateStart& late) {
  const Registers registers{.begin = late.begin,
                            .identity = late.identity,
                            .cursor = late.cursor,
                            .header = static_cast<uint8_t>(late.cursor + 2)};
  LateEntryCode code;
  code.first = Entry(options, registers).First();
  code.second = Entry(options, registers).Second(late.predicate, &code.skip);
  return code;
}

std::vector<Instruction> ExitCode(const ring::Layout& layout, sass::Generation generation,
                                  uint8_t first_register) {
  const uint8_t r = first_register;
  // A last mark's UR2 has the time to arrive.
  return {
      sass::UshiftRight(generation, 0, 3, layout.header_shift(),
                        {.stall = 1, .wait = kAllBarriers}),
      sass::Cs2r32(static_cast<uint8_t>(r + 1), SR::kClockLow, {.stall = 2}),
      sass::Cs2r64(static_cast<uint8_t>(r + 2), SR::kGlobalTimerLow, {.stall = 2}),
      sass::MovFromUniform(r, 2, {.stall = 5}),
      sass::Stg(Width::k128, kRZ, 0, kTable + static_cast<int32_t>(ring::kHeaderEnd), r,
                {.stall = 2}),
  };
}

Instruction AdvanceSlot(sass::Generation generation, uint32_t bytes, const Control& control) {
  return sass::UaddImmediate(generation, 2, 2, bytes, control);
}

Instruction RingSlot(const ring::Layout& layout, const Control& control) {
  return sass::UmaskOr(0, 2, layout.offset_mask(), 3, control);
}

}  // namespace iket::patch
