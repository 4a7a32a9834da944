#include "capture/demangle.h"

#include <cxxabi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>
#include <vector>

#include "capture/mangled_name.h"

namespace iket::capture {
namespace {

std::string Reference(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : "";
}

struct Plain {
  int member = 0;
  int Method(float) const { return 0; }
};
enum class Stage { kLoad = 2 };
enum Old { kOne = 1 };
template <typename... T>
struct Pack {};
template <auto... kValues>
struct Values {};
template <typename T, template <typename...> class Outer>
struct Apply {
  struct Inner {
    Outer<T> value;
  };
};
template <typename T>
auto MakeLambda() {
  return [](T, const Plain&) { return 0; };
}
void Function(int) {}

// Names as this compiler makes them. A type's name as the parameter of a function f.
template <typename... T>
std::vector<std::string> NamesOf() {
  return {"_Z1f" + std::string(typeid(T).name())...};
}

TEST(Demangle, SaysWhatTheRuntimeSays) {
  const auto lambda = [](int) { return [](auto, auto&) {}; };
  std::vector<std::string> names =
      NamesOf<int, unsigned long long, float*, const char* const*, Plain, Plain*, const Plain**,
              Stage, int[3], int(*)[3][4], void (*)(int, float), void(), int& (*)(Plain&&),
              int Plain::*, int (Plain::*)(float) const, void (*(*)(int))(float), Pack<>, Pack<int>,
              Pack<Pack<>, Pack<int, Pack<float>>, Plain, Plain>, std::tuple<int, std::string>,
              std::map<std::string, std::vector<std::function<void(const Plain&, Stage)>>>,
              Values<1, -2, 3u, 4l, 5ul, -6ll, 7ull, true, false, 'a', Stage::kLoad, kOne>,
              Values<&Function>, Apply<int, std::vector>::Inner, Apply<Plain, Pack>,
              decltype(lambda), decltype(lambda(1)), decltype(MakeLambda<double>()),
              Pack<decltype(MakeLambda<Pack<int>>()), decltype(nullptr)>>();
  // Packs within packs, and references that collapse.
  for (const char* name :
       {"_Z1kIJSt5tupleIJifEES0_IJdEEEEvDpT_", "_Z1kIJSt5tupleIJifEERS0_IJdEEEEvDpOT_",
        "_Z1kIJRA3_iRFvvEEEvDpOT_", "_Z1kIRKiEPFT_S2_EOS2_", "_Z1kIiERA3_T_v"}) {
    names.emplace_back(name);
  }
  // Kernels, and what else stands in cubins.
  names.insert(
      names.end(),
      {"_Z4gemmPfS_i",
       "_ZN2ns6kernelIiLi3EEEvT_",
       "_Z6kernelIfEvPKT_PS0_i",
       "_Z6kernelIJifEEvDpT_",
       "_Z6kernelIJifEEvDpRKT_",
       "_Z1kIJEEvDpT_",
       "_Z1kILb1EEvv",
       "_ZN12_GLOBAL__N_11kEv",
       "_ZN53_GLOBAL__N__00000000_8_saxpy_cu_12345678_999999_12345saxpyEfPf",
       "_ZN7cutlass13device_kernelIN4cute5tupleIJNS1_1CILi64EEES4_NS3_ILi1EEEEEEEEvNT_6ParamsE",
       "_Z1fDF16_DF16bDhDn",
       "_Z1fu6__bf16RKS_",
       "_Z1fDv4_f",
       "_Z1fILi3EEvRAT__i",
       "_ZZ4mainENKUlvE_clEv",
       "_ZZN1A1fIiEEvT_ENKUlT_E0_clIfEEDaS1_",
       "_ZN1AC2ERKS_",
       "_ZN1AD0Ev",
       "_ZNK1AcvbEv",
       "_ZN1AplERKS_",
       "_ZlsRSoRK1A",
       "_Z1fSsSaIcE",
       "_ZN1A1fB5cxx11Ev",
       "_Z1fPFvvE.constprop.0.cold",
       "_ZNKR1A1fEv",
       "_Z1fPrVKi",
       "_Z1fM1AKFvvE",
       "_ZN3cub6detail23DeviceTransformFusionKernelINS0_6PolicyEiZ4mainEUlfE_PfJS3_EEEvT0_T1_T2_"
       "DpT3_"});
  size_t compared = 0;
  for (const std::string& name : names) {
    const std::string expected = Reference(name);
    if (expected.empty()) continue;  // not every runtime knows every type
    ++compared;
    EXPECT_EQ(DemangledName(name), expected) << name;
  }
  EXPECT_GE(compared, names.size() - 5);
}

TEST(Demangle, OtherNamesStayAsTheyAre) {
  EXPECT_EQ(DemangledName("saxpy"), "saxpy");
  EXPECT_EQ(DemangledName(""), "");
  EXPECT_EQ(DemangledName("_Z"), "_Z");
  EXPECT_EQ(DemangledName("_Znot mangled"), "_Znot mangled");
  EXPECT_EQ(DemangledName("_Z99999999999999999999999999x"), "_Z99999999999999999999999999x");
  for (const char* name : {"_ZN", "_ZNE", "_Z1", "_Z2f", "_Z1fS_", "_Z1fT_", "_Z1fA3", "_Z1fIiEv",
                           "_Z1fIiET_", "_ZZ1fvE", "_Z1fDp", "_Z1fi.", "_Z1fi!", "_Z1fi4f"}) {
    EXPECT_EQ(DemangleItanium(name, 1000), std::nullopt) << name;
  }
}

// CUTLASS names: what the runtime's demangler refuses.
TEST(Demangle, LongNames) {
  std::string arguments;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    arguments += "N7cutlass4gemm" + std::to_string(6 + std::to_string(i).size()) + "Policy" +
                 std::to_string(i) + "E";
    expected += (i == 0 ? "" : ", ") + ("cutlass::gemm::Policy" + std::to_string(i));
  }
  const std::string name = "_ZN2ns6kernelIJ" + arguments + "EEEvNS_6ParamsE";
  EXPECT_EQ(Reference(name), "");
  EXPECT_EQ(DemangledName(name), "void ns::kernel<" + expected + ">(ns::Params)");
}

// A type that is two of the one before it, `levels` times: 2^levels letters from 10 * levels.
std::string Doubling(int levels) {
  const auto substitution = [](int number) {
    constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string text;
    for (int left = number; left > 0 || text.empty(); left /= 36) {
      text.insert(text.begin(), kDigits[static_cast<size_t>(left % 36)]);
    }
    return "S" + text + "_";
  };
  std::string name = "_Z1f1AIiiE";  // S_ is A, S0_ is A<int, int>
  for (int i = 0; i < levels; ++i) name += "S_I" + substitution(i) + substitution(i) + "E";
  return name;
}

TEST(Demangle, NamesThatWouldGrowWithoutEndAreCutShort) {
  EXPECT_THAT(DemangledName(Doubling(2)),
              testing::StartsWith("f(A<int, int>, A<A<int, int>, A<int, int> >, A<A<A<int, int>"));
  EXPECT_EQ(DemangledName(Doubling(60)), "f(...)");
  // The same with packs that print nothing.
  std::string nothing = "_Z1fIJEEvT_";
  for (int i = 0; i < 60; ++i) nothing += "1AIDpT_DpT_E";
  EXPECT_THAT(DemangledName(nothing), testing::StartsWith("void f<>("));
  EXPECT_EQ(DemangledName("_Z1f" + std::string(5000, 'P') + "i"), "f(...)");
}

TEST(Demangle, WhatIsNotUnderstoodKeepsItsQualifiedName) {
  EXPECT_EQ(DemangledName("_ZN7cutlass13device_kernelIXsr3FooE5valueEEEvT_"),
            "cutlass::device_kernel<...>(...)");
  EXPECT_EQ(DemangledName("_Z7kernel2IXadL_Z1xEEEDTcl1fEEv"), "kernel2<...>(...)");
  EXPECT_EQ(DemangledName("_ZN12_GLOBAL__N_11kIXT_EEEvT_"), "(anonymous namespace)::k<...>(...)");
  EXPECT_EQ(DemangledName("_Z1f" + std::string(size_t{1} << 20, 'P') + "i"), "f(...)");
}

}  // namespace
}  // namespace iket::capture
