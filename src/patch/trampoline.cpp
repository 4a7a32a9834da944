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

constexpr uint32_t kGridIdConstant = 0x30;  // c[0x0]: %gridid, sm_90
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
  constexpr uint8_t kSlot = 0, kSm = 1, kWho = 2, kCursor = 3, kStores = 4;
  constexpr uint8_t kOtherLanes = 0;
  const ring::Layout& layout = options.layout;

  std::vector<Instruction> code = SelectionCode(options.filter);
  const bool selects = !code.empty();
  const auto add = [&code](const Instruction& instruction) { code.push_back(instruction); };
  // A warp starts with its first lane: one store is enough, and 32 cost the memory system as much
  // as they are many.
  const auto store = [&add](const Instruction& stg) { add(stg.WithNegatedGuard(kOtherLanes)); };

  add(sass::S2r(2, SR::kVirtualId, {.stall = 1, .write_barrier = kSlot}));
  add(sass::S2r(0, SR::kVirtualSmId, {.stall = 1, .write_barrier = kSm}));
  add(sass::S2r(12, SR::kCtaIdX, {.stall = 1, .write_barrier = kWho}));
  if (options.reads_cta_yz) {
    add(sass::S2r(5, SR::kCtaIdY, {.stall = 1, .write_barrier = kWho}));
    add(sass::S2r(14, SR::kCtaIdZ, {.stall = 1, .write_barrier = kWho}));
  } else {
    add(sass::MovImmediate(14, 0, {.stall = 1}));
  }
  add(sass::S2r(13, SR::kPackedTid, {.stall = 1, .write_barrier = kWho}));
  add(sass::Ldc(15, 0, kGridIdConstant, {.stall = 1, .write_barrier = kWho}));
  if (selects) {
    add(sass::Uldc64(0, kUserConstantBank, options.constant_offset, {.stall = 12}));
    add(sass::UmaskOr(1, 1, ~0u, kSelectionResult, {.stall = kUniformToAddress}));
  } else {
    add(sass::Uldc64(0, kUserConstantBank, options.constant_offset, {.stall = 1}));
  }
  add(sass::MovImmediate(9, ring::BeginTag(options.kernel), {.stall = 1}));

  add(sass::TestImmediate(kOtherLanes, 2, kLaneBits, {.stall = 1, .wait = Bit(kSlot)}));
  add(sass::AndImmediate(2, 2, kSlotBits, {.stall = 5}));
  add(sass::ImadImmediate(4, 0, kHeadersPerSm, 2, {.stall = 5, .wait = Bit(kSm)}));
  add(sass::Ldg(Width::k64, 10, 4, 0, kTable + static_cast<int32_t>(ring::kHeaderEnd),
                {.stall = 1, .write_barrier = kCursor}));
  add(sass::R2ur(3, 4, {.stall = 1}));
  if (options.reads_cta_yz) {
    add(sass::ImadImmediate(14, 14, 1u << 16, 5, {.stall = 1, .wait = Bit(kWho)}));
  }
  add(sass::OrImmediate(13, 13, ring::kTagIdentity, {.stall = 5, .wait = Bit(kWho)}));
  add(sass::R2ur(2, 10, {.stall = 1, .wait = Bit(kCursor)}));
  // Behind the load: a store to a sector that is being loaded makes the load wait for it.
  store(sass::Stg(Width::k128, 4, 0, kTable + static_cast<int32_t>(ring::kHeaderIdentity), 12,
                  {.stall = 1, .read_barrier = kStores}));
  // The warp begins when it could have begun without us: what its SM does until here is our cost.
  add(sass::Cs2r32(8, SR::kClockLow, {.stall = 1}));
  add(sass::Cs2r32(10, SR::kGlobalTimerLow, {.stall = 11}));
  // Both R2UR are 13 cycles away by now.
  add(sass::UshiftLeft(3, 3, layout.header_shift(), {.stall = kUniformToUniform}));
  add(RingSlot(layout, {.stall = kUniformToAddress}));
  store(sass::StgEvictFirst(Width::k128, kRZ, 0, 0, 8, {.stall = 1, .read_barrier = kStores}));
  add(AdvanceSlot(ring::kRecordBytes, {.stall = kUniformToUniform}));
  add(RingSlot(layout, {.stall = kUniformToAddress}));
  store(sass::StgEvictFirst(Width::k128, kRZ, 0, 0, 12, {.stall = 1, .read_barrier = kStores}));
  // The kernel will write R8..R15 without knowing of the stores.
  add(AdvanceSlot(ring::kRecordBytes, {.stall = kUniformToUniform, .wait = Bit(kStores)}));
  return code;
}

std::vector<Instruction> ExitCode(const ring::Layout& layout, uint8_t first_register) {
  const uint8_t r = first_register;
  // A last mark's UR2 has the time to arrive.
  return {
      sass::UshiftRight(0, 3, layout.header_shift(), {.stall = 1, .wait = kAllBarriers}),
      sass::Cs2r32(static_cast<uint8_t>(r + 1), SR::kClockLow, {.stall = 2}),
      sass::Cs2r64(static_cast<uint8_t>(r + 2), SR::kGlobalTimerLow, {.stall = 2}),
      sass::MovFromUniform(r, 2, {.stall = 5}),
      sass::Stg(Width::k128, kRZ, 0, kTable + static_cast<int32_t>(ring::kHeaderEnd), r,
                {.stall = 2}),
  };
}

Instruction AdvanceSlot(uint32_t bytes, const Control& control) {
  return sass::UaddImmediate(2, 2, bytes, control);
}

Instruction RingSlot(const ring::Layout& layout, const Control& control) {
  return sass::UmaskOr(0, 2, layout.offset_mask(), 3, control);
}

}  // namespace iket::patch
