#include "capture/mangled_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <utility>
#include <vector>

#include "capture/mangled_node.h"

namespace iket::capture {
namespace {

using Node = MangledNode;
using Kind = MangledNode::Kind;
using Nodes = std::vector<const Node*>;

struct Code {
  std::string_view code;
  std::string_view text;
};

constexpr auto kOperators = std::to_array<Code>(
    {{"aN", "&="}, {"aS", "="},       {"aa", "&&"},   {"ad", "&"},      {"an", "&"},
     {"cl", "()"}, {"cm", ","},       {"co", "~"},    {"dV", "/="},     {"da", " delete[]"},
     {"de", "*"},  {"dl", " delete"}, {"dv", "/"},    {"eO", "^="},     {"eo", "^"},
     {"eq", "=="}, {"ge", ">="},      {"gt", ">"},    {"ix", "[]"},     {"lS", "<<="},
     {"le", "<="}, {"ls", "<<"},      {"lt", "<"},    {"mI", "-="},     {"mL", "*="},
     {"mi", "-"},  {"ml", "*"},       {"mm", "--"},   {"na", " new[]"}, {"ne", "!="},
     {"ng", "-"},  {"nt", "!"},       {"nw", " new"}, {"oR", "|="},     {"oo", "||"},
     {"or", "|"},  {"pL", "+="},      {"pl", "+"},    {"pm", "->*"},    {"pp", "++"},
     {"ps", "+"},  {"pt", "->"},      {"rM", "%="},   {"rS", ">>="},    {"rm", "%"},
     {"rs", ">>"}, {"ss", "<=>"}});

constexpr auto kBuiltins = std::to_array<Code>({{"a", "signed char"},
                                                {"b", "bool"},
                                                {"c", "char"},
                                                {"d", "double"},
                                                {"e", "long double"},
                                                {"f", "float"},
                                                {"g", "__float128"},
                                                {"h", "unsigned char"},
                                                {"i", "int"},
                                                {"j", "unsigned int"},
                                                {"l", "long"},
                                                {"m", "unsigned long"},
                                                {"n", "__int128"},
                                                {"o", "unsigned __int128"},
                                                {"s", "short"},
                                                {"t", "unsigned short"},
                                                {"v", "void"},
                                                {"w", "wchar_t"},
                                                {"x", "long long"},
                                                {"y", "unsigned long long"},
                                                {"z", "..."},
                                                {"Da", "auto"},
                                                {"Dc", "decltype(auto)"},
                                                {"Dd", "decimal64"},
                                                {"De", "decimal128"},
                                                {"Df", "decimal32"},
                                                {"Dh", "half"},
                                                {"Di", "char32_t"},
                                                {"Dn", "decltype(nullptr)"},
                                                {"Ds", "char16_t"},
                                                {"Du", "char8_t"}});

constexpr auto kStandard = std::to_array<Code>({{"a", "std::allocator"},
                                                {"b", "std::basic_string"},
                                                {"s", "std::string"},
                                                {"i", "std::istream"},
                                                {"o", "std::ostream"},
                                                {"d", "std::iostream"}});

template <size_t N>
std::optional<std::string_view> Find(const std::array<Code, N>& codes, std::string_view code) {
  const auto found = std::ranges::find(codes, code, &Code::code);
  if (found == codes.end()) return std::nullopt;
  return found->text;
}

// Parts are null when the name is not understood; every caller hands that on.
class Parser {
 public:
  explicit Parser(std::string_view mangled) : left_(mangled) {}

  const Node* Parse() {
    if (!Take("_Z")) return nullptr;
    const Node* encoding = Encoding();
    if (encoding == nullptr || left_.empty()) return encoding;
    // Suffixes of the compiler, such as `.constprop.0`: letters, then numbers.
    while (Next(".")) {
      size_t end = 1;
      while (std::islower(Peek(end)) != 0 || Peek(end) == '_') ++end;
      while (Peek(end) == '.' && std::isdigit(Peek(end + 1)) != 0) {
        ++end;
        while (std::isdigit(Peek(end)) != 0) ++end;
      }
      if (end == 1) return nullptr;
      const std::string suffix = fmt::format(" [clone {}]", left_.substr(0, end));
      left_.remove_prefix(end);
      encoding = Make({.kind = Kind::kQualified, .text = suffix, .first = encoding});
    }
    return left_.empty() ? encoding : nullptr;
  }

 private:
  static constexpr int kMaxDepth = 256;

  // Counts the depth of the recursion while it lives.
  class Level {
   public:
    explicit Level(int& depth) : depth_(depth) { ++depth_; }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& depth_;
  };

  const Node* Make(Node node) { return &nodes_.emplace_back(std::move(node)); }
  const Node* Text(std::string_view text) { return Make({.text = std::string(text)}); }
  const Node* Remember(const Node* node) {
    if (node != nullptr) substitutions_.push_back(node);
    return node;
  }

  bool Next(std::string_view text) const { return left_.starts_with(text); }
  char Peek(size_t at = 0) const { return at < left_.size() ? left_[at] : '\0'; }
  bool Take(std::string_view text) {
    if (!Next(text)) return false;
    left_.remove_prefix(text.size());
    return true;
  }

  std::optional<size_t> Number() {
    size_t value = 0;
    const size_t before = left_.size();
    while (Peek() >= '0' && Peek() <= '9') {
      value = value * 10 + static_cast<size_t>(Peek() - '0');
      if (value > 1'000'000) return std::nullopt;
      left_.remove_prefix(1);
    }
    return left_.size() == before ? std::optional<size_t>() : value;
  }

  // `_` is 0, `0_` is 1, ... in base 36 or 10.
  std::optional<size_t> Index(unsigned base) {
    if (Take("_")) return 0;
    size_t value = 0;
    for (; !left_.empty() && left_[0] != '_'; left_.remove_prefix(1)) {
      const char c = left_[0];
      const auto digit = static_cast<unsigned>(c >= '0' && c <= '9'   ? c - '0'
                                               : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                                                      : 99);
      if (digit >= base) return std::nullopt;
      value = value * base + digit;
      if (value > 1'000'000) return std::nullopt;
    }
    if (!Take("_")) return std::nullopt;
    return value + 1;
  }

  const Node* Encoding();
  const Node* Name(bool& has_arguments, std::string& qualifiers, bool& has_no_return);
  const Node* NestedName(bool& has_arguments, std::string& qualifiers, bool& has_no_return);
  const Node* LocalName(bool& has_arguments, std::string& qualifiers, bool& has_no_return);
  const Node* UnqualifiedName(const Node* scope, bool& has_no_return);
  const Node* SourceName();
  const Node* UnnamedType();
  const Node* WithTags(const Node* name);
  const Node* Substitution();
  const Node* TemplateParameter();
  const Node* Type();
  const Node* TypeWithoutMemory(bool& remember);
  const Node* FunctionType();
  const Node* ArrayType();
  const Node* ClassType();
  const Node* Pointer(std::string_view symbol);
  bool Arguments(Nodes& arguments);
  const Node* Argument();
  const Node* Literal();
  bool Parameters(Nodes& parameters);
  std::string Qualifiers();

  std::string_view left_;
  std::deque<Node> nodes_;
  Nodes substitutions_;
  int depth_ = 0;
};

// The innermost name of a scope, for constructors.
std::string_view LastName(const Node* scope) {
  while (scope != nullptr) {
    switch (scope->kind) {
      case Kind::kText: {
        const std::string_view text = scope->text;
        const size_t colon = text.rfind(':');
        return colon == text.npos ? text : text.substr(colon + 1);
      }
      case Kind::kTemplate:
      case Kind::kQualified:
        scope = scope->first;
        break;
      case Kind::kNested:
      case Kind::kLocal:
        scope = scope->second;
        break;
      default:
        return {};
    }
  }
  return {};
}

std::string Parser::Qualifiers() {
  std::string qualifiers;
  const bool restricted = Take("r");
  const bool is_volatile = Take("V");
  if (Take("K")) qualifiers += " const";
  if (is_volatile) qualifiers += " volatile";
  if (restricted) qualifiers += " restrict";
  return qualifiers;
}

const Node* Parser::Encoding() {
  const Level level(depth_);
  if (depth_ > kMaxDepth) return nullptr;
  if (Next("T") || Next("G")) return nullptr;  // tables and thunks: no kernel
  bool has_arguments = false;
  bool has_no_return = false;
  std::string qualifiers;
  const Node* name = Name(has_arguments, qualifiers, has_no_return);
  if (name == nullptr || left_.empty() || Next("E") || Next(".")) return name;
  const Node* returned = nullptr;
  if (has_arguments && !has_no_return) {
    returned = Type();
    if (returned == nullptr) return nullptr;
  }
  Nodes parameters;
  if (!Parameters(parameters)) return nullptr;
  return Make({.kind = Kind::kEncoding,
               .text = qualifiers,
               .first = returned,
               .second = name,
               .items = std::move(parameters)});
}

// Types up to the end of a function's parameters; `v` alone is none.
bool Parser::Parameters(Nodes& parameters) {
  if (Next("v") && (left_.size() == 1 || Peek(1) == 'E' || Peek(1) == '.')) return Take("v");
  while (!left_.empty() && !Next("E") && !Next(".")) {
    if ((Next("R") || Next("O")) && Peek(1) == 'E') return true;  // qualifier of the function
    const Node* type = Type();
    if (type == nullptr) return false;
    parameters.push_back(type);
  }
  return !parameters.empty();
}

const Node* Parser::Name(bool& has_arguments, std::string& qualifiers, bool& has_no_return) {
  if (Take("N")) return NestedName(has_arguments, qualifiers, has_no_return);
  if (Take("Z")) return LocalName(has_arguments, qualifiers, has_no_return);
  const Node* name = nullptr;
  bool is_substitution = false;
  if (Take("St")) {
    name = UnqualifiedName(nullptr, has_no_return);
    if (name == nullptr) return nullptr;
    name = Make({.kind = Kind::kNested, .first = Text("std"), .second = name});
  } else if (Next("S")) {
    name = Substitution();
    is_substitution = true;
  } else {
    name = UnqualifiedName(nullptr, has_no_return);
  }
  if (name == nullptr || !Next("I")) return name;
  if (!is_substitution) Remember(name);
  Nodes arguments;
  if (!Arguments(arguments)) return nullptr;
  has_arguments = true;
  return Make({.kind = Kind::kTemplate, .first = name, .items = std::move(arguments)});
}

const Node* Parser::NestedName(bool& has_arguments, std::string& qualifiers, bool& has_no_return) {
  qualifiers = Qualifiers();
  if (Take("R")) qualifiers += " &";
  if (Take("O")) qualifiers += " &&";
  const Node* prefix = nullptr;
  bool remembered = false;  // the last substitution is the whole prefix
  while (!Take("E")) {
    const Node* next = nullptr;
    remembered = false;
    if (Next("I")) {
      Nodes arguments;
      if (prefix == nullptr || !Arguments(arguments)) return nullptr;
      prefix = Make({.kind = Kind::kTemplate, .first = prefix, .items = std::move(arguments)});
      has_arguments = true;
    } else {
      has_arguments = false;
      has_no_return = false;
      if (prefix == nullptr && Take("St")) {
        prefix = Text("std");
        continue;  // std alone is no substitution
      }
      if (prefix == nullptr && Next("S")) {
        prefix = Substitution();
        if (prefix == nullptr) return nullptr;
        continue;
      }
      if (prefix == nullptr && Next("T")) {
        next = TemplateParameter();
      } else {
        Take("L");  // internal linkage, said by some compilers
        next = UnqualifiedName(prefix, has_no_return);
      }
      if (next == nullptr) return nullptr;
      prefix =
          prefix == nullptr ? next : Make({.kind = Kind::kNested, .first = prefix, .second = next});
    }
    Remember(prefix);
    remembered = true;
  }
  // The whole name becomes a substitution only where it is a type.
  if (remembered) substitutions_.pop_back();
  return prefix;
}

const Node* Parser::LocalName(bool& has_arguments, std::string& qualifiers, bool& has_no_return) {
  const Node* function = Encoding();
  if (function == nullptr || !Take("E")) return nullptr;
  const Node* entity = nullptr;
  if (Take("s")) {
    entity = Text("string literal");
  } else {
    const Node* default_argument = nullptr;
    if (Take("d")) {
      const std::optional<size_t> index = Index(10);
      if (!index) return nullptr;
      default_argument = Text(fmt::format("{{default arg#{}}}", *index + 1));
    }
    entity = Name(has_arguments, qualifiers, has_no_return);
    if (entity != nullptr && default_argument != nullptr) {
      entity = Make({.kind = Kind::kLocal, .first = default_argument, .second = entity});
    }
  }
  if (entity == nullptr) return nullptr;
  // Discriminator of equal names: `_1`, `__12_`.
  if (Take("__")) {
    if (!Number() || !Take("_")) return nullptr;
  } else if (Next("_") && Peek(1) >= '0' && Peek(1) <= '9') {
    left_.remove_prefix(2);
  }
  // In a local name the function is said without what it returns.
  if (function->kind == Kind::kEncoding && function->first != nullptr) {
    Node bare = *function;
    bare.first = nullptr;
    function = Make(std::move(bare));
  }
  return Make({.kind = Kind::kLocal, .first = function, .second = entity});
}

const Node* Parser::UnqualifiedName(const Node* scope, bool& has_no_return) {
  if (Next("L") && Peek(1) >= '0' && Peek(1) <= '9') Take("L");
  if (Peek() >= '0' && Peek() <= '9') return WithTags(SourceName());
  if (Next("Ul") || Next("Ut")) return WithTags(UnnamedType());
  if ((Next("C") || Next("D")) && Peek(1) >= '0' && Peek(1) <= '5') {
    const std::string_view name = LastName(scope);
    if (name.empty()) return nullptr;
    has_no_return = true;
    const std::string text = fmt::format("{}{}", Peek() == 'D' ? "~" : "", name);
    left_.remove_prefix(2);
    return WithTags(Text(text));
  }
  if (Take("cv")) {
    has_no_return = true;
    const Node* type = Type();
    if (type == nullptr) return nullptr;
    return Make({.kind = Kind::kConversion, .first = type});
  }
  if (Take("li")) {
    const Node* name = SourceName();
    return name == nullptr ? nullptr : Text(fmt::format("operator\"\" {}", name->text));
  }
  const auto symbol = Find(kOperators, left_.substr(0, 2));
  if (!symbol) return nullptr;
  left_.remove_prefix(2);
  return WithTags(Text(fmt::format("operator{}", *symbol)));
}

const Node* Parser::SourceName() {
  const std::optional<size_t> length = Number();
  if (!length || *length == 0 || *length > left_.size()) return nullptr;
  const std::string_view name = left_.substr(0, *length);
  left_.remove_prefix(*length);
  const bool anonymous = name.size() >= 10 && name.starts_with("_GLOBAL_") &&
                         (name[8] == '.' || name[8] == '_' || name[8] == '$') && name[9] == 'N';
  return Text(anonymous ? "(anonymous namespace)" : name);
}

const Node* Parser::UnnamedType() {
  if (Take("Ut")) {
    const std::optional<size_t> index = Index(10);
    if (!index) return nullptr;
    return Text(fmt::format("{{unnamed type#{}}}", *index + 1));
  }
  Take("Ul");
  Nodes parameters;
  if (!Parameters(parameters) || !Take("E")) return nullptr;
  const std::optional<size_t> index = Index(10);
  if (!index) return nullptr;
  return Make({.kind = Kind::kLambda,
               .text = fmt::format(")#{}}}", *index + 1),
               .items = std::move(parameters)});
}

const Node* Parser::WithTags(const Node* name) {
  while (name != nullptr && Take("B")) {
    const Node* tag = SourceName();
    if (tag == nullptr) return nullptr;
    name =
        Make({.kind = Kind::kQualified, .text = fmt::format("[abi:{}]", tag->text), .first = name});
  }
  return name;
}

const Node* Parser::Substitution() {
  Take("S");
  if (const auto standard = Find(kStandard, left_.substr(0, 1))) {
    left_.remove_prefix(1);
    return WithTags(Text(*standard));
  }
  const std::optional<size_t> index = Index(36);
  return index && *index < substitutions_.size() ? substitutions_[*index] : nullptr;
}

const Node* Parser::TemplateParameter() {
  Take("T");
  const std::optional<size_t> index = Index(10);
  if (!index) return nullptr;
  return Make({.kind = Kind::kParameter, .index = *index});
}

const Node* Parser::Type() {
  const Level level(depth_);
  if (depth_ > kMaxDepth) return nullptr;
  bool remember = true;
  const Node* type = TypeWithoutMemory(remember);
  return remember ? Remember(type) : type;
}

const Node* Parser::Pointer(std::string_view symbol) {
  left_.remove_prefix(1);
  const Node* target = Type();
  if (target == nullptr) return nullptr;
  return Make({.kind = Kind::kPointer, .text = std::string(symbol), .first = target});
}

const Node* Parser::TypeWithoutMemory(bool& remember) {
  for (size_t length : {size_t{2}, size_t{1}}) {
    if (left_.size() < length) continue;
    if (const auto builtin = Find(kBuiltins, left_.substr(0, length))) {
      left_.remove_prefix(length);
      remember = false;
      return Text(*builtin);
    }
  }
  switch (Peek()) {
    case 'r':
    case 'V':
    case 'K': {
      const std::string qualifiers = Qualifiers();
      // A qualified function type is one type; of others the bare one is a substitution too.
      const Node* type = Next("F") ? FunctionType() : Type();
      if (type == nullptr) return nullptr;
      return Make({.kind = Kind::kQualified, .text = qualifiers, .first = type});
    }
    case 'P':
      return Pointer("*");
    case 'R':
      return Pointer("&");
    case 'O':
      return Pointer("&&");
    case 'F':
      return FunctionType();
    case 'A':
      return ArrayType();
    case 'M': {
      left_.remove_prefix(1);
      const Node* owner = Type();
      const Node* member = owner == nullptr ? nullptr : Type();
      if (member == nullptr) return nullptr;
      return Make({.kind = Kind::kMember, .first = owner, .second = member});
    }
    case 'u':
      left_.remove_prefix(1);
      return SourceName();
    case 'D': {
      if (Take("Dp")) {
        const Node* pattern = Type();
        if (pattern == nullptr) return nullptr;
        return Make({.kind = Kind::kExpansion, .first = pattern});
      }
      if (Next("Do")) return FunctionType();
      if (Take("DF")) {
        const std::optional<size_t> bits = Number();
        if (!bits) return nullptr;
        remember = false;
        if (Take("b")) return Text(fmt::format("std::bfloat{}_t", *bits));
        return Take("_") ? Text(fmt::format("_Float{}", *bits)) : nullptr;
      }
      if (Take("Dv")) {
        const std::optional<size_t> lanes = Number();
        if (!lanes || !Take("_")) return nullptr;
        const Node* element = Type();
        if (element == nullptr) return nullptr;
        return Make({.kind = Kind::kQualified,
                     .text = fmt::format(" __vector({})", *lanes),
                     .first = element});
      }
      return nullptr;
    }
    case 'T': {
      const Node* parameter = TemplateParameter();
      if (parameter == nullptr || !Next("I")) return parameter;
      Remember(parameter);
      Nodes arguments;
      if (!Arguments(arguments)) return nullptr;
      return Make({.kind = Kind::kTemplate, .first = parameter, .items = std::move(arguments)});
    }
    case 'S':
      if (Peek(1) != 't') {
        const Node* known = Substitution();
        if (known == nullptr || !Next("I")) {
          remember = false;
          return known;
        }
        Nodes arguments;
        if (!Arguments(arguments)) return nullptr;
        return Make({.kind = Kind::kTemplate, .first = known, .items = std::move(arguments)});
      }
      return ClassType();
    default:
      return ClassType();
  }
}

const Node* Parser::ClassType() {
  bool has_arguments = false;
  bool has_no_return = false;
  std::string qualifiers;
  return Name(has_arguments, qualifiers, has_no_return);
}

const Node* Parser::FunctionType() {
  std::string after;
  if (Take("Do")) after = " noexcept";
  if (!Take("F")) return nullptr;
  Take("Y");
  const Node* returned = Type();
  if (returned == nullptr) return nullptr;
  Nodes items = {returned};
  Nodes parameters;
  if (!Parameters(parameters)) return nullptr;
  items.insert(items.end(), parameters.begin(), parameters.end());
  if (Take("R")) after = " &" + after;
  if (Take("O")) after = " &&" + after;
  if (!Take("E")) return nullptr;
  return Make({.kind = Kind::kFunction, .text = after, .items = std::move(items)});
}

const Node* Parser::ArrayType() {
  Take("A");
  std::string dimension;
  const Node* parameter = nullptr;
  if (Next("T")) {
    parameter = TemplateParameter();
    if (parameter == nullptr) return nullptr;
  } else if (!Next("_")) {
    const std::optional<size_t> number = Number();
    if (!number) return nullptr;
    dimension = std::to_string(*number);
  }
  if (!Take("_")) return nullptr;
  const Node* element = Type();
  if (element == nullptr) return nullptr;
  return Make({.kind = Kind::kArray, .text = dimension, .first = element, .second = parameter});
}

bool Parser::Arguments(Nodes& arguments) {
  Take("I");
  while (!Take("E")) {
    const Node* argument = Argument();
    if (argument == nullptr) return false;
    arguments.push_back(argument);
  }
  return true;
}

const Node* Parser::Argument() {
  const Level level(depth_);
  if (depth_ > kMaxDepth) return nullptr;
  if (Take("J")) {
    Nodes items;
    while (!Take("E")) {
      const Node* item = Argument();
      if (item == nullptr) return nullptr;
      items.push_back(item);
    }
    return Make({.kind = Kind::kPack, .items = std::move(items)});
  }
  if (Next("L")) return Literal();
  if (Take("XadL_Z")) {
    const Node* function = Encoding();
    if (function == nullptr || !Take("EE")) return nullptr;
    return Make({.kind = Kind::kAddress, .first = function});
  }
  if (Next("X")) return nullptr;
  return Type();
}

const Node* Parser::Literal() {
  Take("L");
  if (Take("_Z")) {
    const Node* encoding = Encoding();
    return encoding != nullptr && Take("E") ? encoding : nullptr;
  }
  const char type_code = Peek();
  const Node* type = Type();
  if (type == nullptr) return nullptr;
  const size_t end = left_.find('E');
  if (end == left_.npos) return nullptr;
  std::string value(left_.substr(0, end));
  left_.remove_prefix(end + 1);
  if (value.starts_with('n')) value[0] = '-';
  switch (type_code) {
    case 'b':
      if (value == "0") return Text("false");
      if (value == "1") return Text("true");
      break;
    case 'i':
      return Text(value);
    case 'j':
      return Text(value + "u");
    case 'l':
      return Text(value + "l");
    case 'm':
      return Text(value + "ul");
    case 'x':
      return Text(value + "ll");
    case 'y':
      return Text(value + "ull");
    case 'f':
    case 'd':
    case 'e':
      value = fmt::format("[{}]", value);
      break;
    default:
      break;
  }
  return Make({.kind = Kind::kLiteral, .text = value, .first = type});
}

}  // namespace

std::optional<std::string> DemangleItanium(std::string_view mangled, size_t max_bytes) {
  Parser parser(mangled);
  const MangledNode* root = parser.Parse();
  std::string text;
  if (root == nullptr || !PrintMangled(*root, max_bytes, text)) return std::nullopt;
  return text;
}

}  // namespace iket::capture
