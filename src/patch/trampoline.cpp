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

}  // namespace

// Registers: R4 offset of the ring's header; R8..R11 are the begin record, of which R10 is the
// cursor first, and R12..R15 the identity. P0 holds in all lanes but the first. Until the identity
// is stored, UR0:UR1 is the window's base.
std::vector<Instruction> EntryCode(const EntryOptions& options) {
  // Scoreboards.
  constexpr uint8_t kSlot = 0, kSm = 1, kWho = 2, kCursor = 3, kStores = 4, kWindow = 5;
  constexpr uint8_t kOtherLanes = 0;
  const ring::Layout& layout = options.layout;
  const sass::Generation generation = options.generation;
  // What is packed into one special register was seen on an H200 alone.
  const bool packed = generation == sass::Generation::kHopper;
  const bool late_window = sass::HasVariableUniformLoad(generation);
  const bool late_r2ur = sass::HasVariableR2ur(generation);

  std::vector<Instruction> code = SelectionCode(options.filter, generation);
  const bool selects = !code.empty();
  const auto add = [&code](const Instruction& instruction) { code.push_back(instruction); };
  // A warp starts with its first lane: one store is enough, and 32 cost the memory system as much
  // as they are many.
  const auto store = [&add](const Instruction& stg) { add(stg.WithNegatedGuard(kOtherLanes)); };

  add(sass::S2r(2, SR::kVirtualId, {.stall = 1, .write_barrier = kSlot}));
  if (!packed) add(sass::S2r(1, SR::kLaneId, {.stall = 1, .write_barrier = kSlot}));
  add(sass::S2r(0, SR::kVirtualSmId, {.stall = 1, .write_barrier = kSm}));
  add(sass::S2r(12, SR::kCtaIdX, {.stall = 1, .write_barrier = kWho}));
  if (options.reads_cta_yz) {
    add(sass::S2r(5, SR::kCtaIdY, {.stall = 1, .write_barrier = kWho}));
    add(sass::S2r(14, SR::kCtaIdZ, {.stall = 1, .write_barrier = kWho}));
  } else {
    add(sass::MovImmediate(14, 0, {.stall = 1}));
  }
  if (packed) {
    add(sass::S2r(13, SR::kPackedTid, {.stall = 1, .write_barrier = kWho}));
  } else {
    add(sass::S2r(13, SR::kTidX, {.stall = 1, .write_barrier = kWho}));
    add(sass::S2r(6, SR::kTidY, {.stall = 1, .write_barrier = kWho}));
    add(sass::S2r(7, SR::kTidZ, {.stall = 1, .write_barrier = kWho}));
  }
  add(sass::LoadConstant(generation, 15, 0, GridIdConstant(generation),
                         {.stall = 1, .write_barrier = kWho}));
  const uint8_t window = late_window ? kWindow : sass::kNoBarrier;
  const uint8_t wait_for_window = late_window ? Bit(kWindow) : 0;
  const auto load_window = [&](uint8_t stall) {
    add(sass::LoadUniform64(generation, 0, kUserConstantBank, options.constant_offset,
                            {.stall = stall, .write_barrier = window}));
  };
  if (selects) {
    load_window(12);
    add(sass::UmaskOr(1, 1, ~0u, kSelectionResult,
                      {.stall = kUniformToAddress, .wait = wait_for_window}));
  } else {
    load_window(1);
  }
  add(sass::MovImmediate(9, ring::BeginTag(options.kernel), {.stall = 1}));

  add(sass::TestImmediate(kOtherLanes, packed ? 2 : 1, kLaneBits,
                          {.stall = 1, .wait = Bit(kSlot)}));
  add(sass::AndImmediate(2, 2, kSlotBits, {.stall = 5}));
  add(sass::ImadImmediate(4, 0, kHeadersPerSm, 2, {.stall = 5, .wait = Bit(kSm)}));
  add(sass::Ldg(Width::k64, 10, 4, 0, kTable + static_cast<int32_t>(ring::kHeaderEnd),
                {.stall = 1, .write_barrier = kCursor, .wait = wait_for_window}));
  // Their scoreboards are free again.
  add(sass::R2ur(generation, 3, 4,
                 {.stall = 1, .write_barrier = late_r2ur ? kSlot : sass::kNoBarrier}));
  if (options.reads_cta_yz) {
    add(sass::ImadImmediate(14, 14, 1u << 16, 5, {.stall = 1, .wait = Bit(kWho)}));
  }
  if (!packed) {
    add(sass::ImadImmediate(13, 6, 1u << 16, 13, {.stall = 5, .wait = Bit(kWho)}));
    add(sass::ImadImmediate(13, 7, 1u << 26, 13, {.stall = 5}));
  }
  add(sass::OrImmediate(13, 13, ring::kTagIdentity, {.stall = 5, .wait = Bit(kWho)}));
  add(sass::R2ur(
      generation, 2, 10,
      {.stall = 1, .write_barrier = late_r2ur ? kSm : sass::kNoBarrier, .wait = Bit(kCursor)}));
  // Behind the load: a store to a sector that is being loaded makes the load wait for it.
  store(sass::Stg(Width::k128, 4, 0, kTable + static_cast<int32_t>(ring::kHeaderIdentity), 12,
                  {.stall = 1, .read_barrier = kStores}));
  // The warp begins when it could have begun without us: what its SM does until here is our cost.
  add(sass::Cs2r32(8, SR::kClockLow, {.stall = 1}));
  add(sass::Cs2r32(10, SR::kGlobalTimerLow, {.stall = 11}));
  // Both R2UR are 13 cycles away by now, or are waited for.
  const uint8_t wait_for_r2ur = late_r2ur ? Bit(kSlot) | Bit(kSm) : 0;
  add(sass::UshiftLeft(generation, 3, 3, layout.header_shift(),
                       {.stall = kUniformToUniform, .wait = wait_for_r2ur}));
  add(RingSlot(layout, {.stall = kUniformToAddress}));
  store(sass::StgEvictFirst(Width::k128, kRZ, 0, 0, 8, {.stall = 1, .read_barrier = kStores}));
  add(AdvanceSlot(generation, ring::kRecordBytes, {.stall = kUniformToUniform}));
  add(RingSlot(layout, {.stall = kUniformToAddress}));
  store(sass::StgEvictFirst(Width::k128, kRZ, 0, 0, 12, {.stall = 1, .read_barrier = kStores}));
  // The kernel will write R8..R15 without knowing of the stores.
  add(AdvanceSlot(generation, ring::kRecordBytes,
                  {.stall = kUniformToUniform, .wait = Bit(kStores)}));
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
