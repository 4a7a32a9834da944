#include "patch/cta_selection.h"

#include <bit>

#include "ring/layout.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Compare;
using sass::Instruction;
using sass::Join;
using SR = sass::SpecialRegister;

// What a kernel finds in c[0]: dimensions of the grid in CTAs, of a cluster in CTAs. From sm_100 on
// the latter stand kClusterStride before there for each unit of SR_CgaSize, as ptxas reads them.
constexpr uint32_t kClusterStride = 0xa0;
constexpr uint32_t GridConstant(sass::Generation generation) {
  return generation == sass::Generation::kBlackwell ? 0x370 : 0xc;
}
constexpr uint32_t ClusterConstant(sass::Generation generation) {
  return generation == sass::Generation::kBlackwell ? 0x2a0 : 0x144;
}
constexpr uint8_t kLeftOut = 1, kOffTheSms = 2;  // predicates
constexpr uint8_t kLoads = 0;                    // scoreboard
// Nobody measures these: one after the other, each when the one before it is done.
constexpr uint8_t kToRegister = 6, kToPredicate = 13;
// A scoreboard is set a cycle after its instruction: who waits for it must not be next.
constexpr uint8_t kToScoreboard = 2;
constexpr uint8_t kTrue = sass::kPredicateTrue, kZero = sass::kRegisterZero;

class Code {
 public:
  Code(const ring::CtaFilter& filter, sass::Generation generation) : generation_(generation) {
    // RZ is other than 1, and is not other than 0.
    Add(sass::CompareImmediate(kLeftOut, Compare::kNotEqual, kZero, filter.nobody ? 1 : 0,
                               Join::kAnd, kTrue, {.stall = kToPredicate}));
    if (filter.cluster) OutsideCluster(*filter.cluster);
    if (filter.sample != 1) NoMultiple(filter.sample);
    if (!filter.sms.empty()) OffTheSms(filter.sms);
    Add(sass::SelectImmediate(0, static_cast<uint32_t>(ring::kSinkBit >> 32), kLeftOut,
                              {.stall = kToRegister}));
    if (sass::HasVariableR2ur(generation_)) {
      Add(sass::R2ur(generation_, kSelectionResult, 0,
                     {.stall = kToScoreboard, .write_barrier = kLoads}));
      Add(sass::Nop({.stall = kToRegister, .wait = 1 << kLoads}));
    } else {
      Add(sass::R2ur(generation_, kSelectionResult, 0, {.stall = kToPredicate}));
    }
  }

  std::vector<Instruction> Take() { return std::move(code_); }

 private:
  void Add(const Instruction& instruction) { code_.push_back(instruction); }
  void Read(uint8_t to, SR place) {
    Add(sass::S2r(to, place, {.stall = kToScoreboard, .write_barrier = kLoads}));
  }
  void Load(uint8_t to, uint32_t constant) {
    Add(sass::LoadConstant(generation_, to, 0, constant,
                           {.stall = kToScoreboard, .write_barrier = kLoads}));
  }
  // How many CTAs a cluster has in an axis.
  void LoadClusterSize(uint8_t to, uint32_t axis) {
    const uint32_t constant = ClusterConstant(generation_) + 4 * axis;
    switch (generation_) {
      case sass::Generation::kAmpere:
        return Add(sass::MovImmediate(to, 1, {.stall = kToRegister}));
      case sass::Generation::kHopper:
        return Load(to, constant);
      case sass::Generation::kBlackwell:
        Add(sass::Cs2r32(to, SR::kClusterKind, {.stall = kToPredicate}));
        Add(sass::ImadImmediate(to, to, -kClusterStride, kZero, {.stall = kToRegister}));
        return Add(sass::LoadConstantAt(to, to, 0, constant,
                                        {.stall = kToScoreboard, .write_barrier = kLoads}));
    }
  }

  // CTAs of cluster c have numbers of [c * size, c * size + size) in each axis.
  void OutsideCluster(const std::array<uint32_t, 3>& cluster) {
    constexpr SR kPlaces[] = {SR::kCtaIdX, SR::kCtaIdY, SR::kCtaIdZ};
    for (uint32_t axis = 0; axis < 3; ++axis) {
      Read(0, kPlaces[axis]);
      LoadClusterSize(1, axis);
      Add(sass::ImadImmediate(0, 1, -cluster[axis], 0,
                              {.stall = kToRegister, .wait = 1 << kLoads}));
      Add(sass::CompareRegisters(kLeftOut, Compare::kGreaterOrEqual, 0, 1, Join::kOr, kLeftOut,
                                 {.stall = kToPredicate}));
    }
  }

  void NoMultiple(uint32_t sample) {
    const Divisor divisor = DivisorOf(sample);
    Read(0, SR::kCtaIdZ);
    Read(1, SR::kCtaIdY);
    Load(2, GridConstant(generation_) + 4);
    Load(3, GridConstant(generation_));
    Add(sass::Imad(0, 0, 2, 1, {.stall = kToRegister, .wait = 1 << kLoads}));
    Read(1, SR::kCtaIdX);
    Add(sass::Imad(0, 0, 3, 1, {.stall = kToRegister, .wait = 1 << kLoads}));
    Add(sass::ImadImmediate(0, 0, divisor.inverse, kZero, {.stall = kToRegister}));
    Add(sass::RotateRight(0, 0, divisor.shift, {.stall = kToRegister}));
    Add(sass::CompareImmediate(kLeftOut, Compare::kGreater, 0, divisor.most, Join::kOr, kLeftOut,
                               {.stall = kToPredicate}));
  }

  void OffTheSms(const std::vector<ring::SmRange>& sms) {
    Read(0, SR::kVirtualSmId);
    uint8_t off_those_before = kTrue;
    for (const ring::SmRange& range : sms) {
      Add(sass::AddImmediate(generation_, 1, 0, -range.first,
                             {.stall = kToRegister, .wait = 1 << kLoads}));
      Add(sass::CompareImmediate(kOffTheSms, Compare::kGreater, 1, range.last - range.first,
                                 Join::kAnd, off_those_before, {.stall = kToPredicate}));
      off_those_before = kOffTheSms;
    }
    // On none of them: left out, as 0 is not below 0.
    Add(sass::CompareRegisters(kLeftOut, Compare::kGreaterOrEqual, kZero, kZero, Join::kAnd, kTrue,
                               {.stall = kToPredicate})
            .WithGuard(kOffTheSms));
  }

  sass::Generation generation_;
  std::vector<Instruction> code_;
};

}  // namespace

Divisor DivisorOf(uint32_t number) {
  Divisor divisor{.shift = static_cast<uint32_t>(std::countr_zero(number)), .most = ~0u / number};
  const uint32_t odd = number >> divisor.shift;
  // Newton: each step doubles the bits that are right, of which odd * odd = 1 has three.
  divisor.inverse = odd;
  for (int bits = 3; bits < 32; bits *= 2) divisor.inverse *= 2 - odd * divisor.inverse;
  return divisor;
}

std::vector<Instruction> SelectionCode(const ring::CtaFilter& filter, sass::Generation generation) {
  if (filter.passes_all()) return {};
  return Code(filter, generation).Take();
}

}  // namespace iket::patch
