#include <fmt/format.h>

#include <utility>

#include "capture/mangled_node.h"

namespace iket::capture {
namespace {

using Kind = MangledNode::Kind;

class Printer {
 public:
  Printer(size_t max_bytes, std::string& out)
      : max_bytes_(max_bytes), steps_left_(4 * max_bytes + 4096), out_(out) {}

  bool Print(const MangledNode& root) {
    Whole(root);
    return !failed_;
  }

 private:
  // Deeper names are not made by people; the bound keeps the stack.
  static constexpr int kMaxDepth = 512;
  static constexpr size_t kNoPack = ~size_t{0};

  // Of each type the part before a declarator, and the part after it.
  void Whole(const MangledNode& node) {
    Left(node);
    Right(node);
  }

  // The template whose signature is being printed, and those around it.
  struct Scope {
    const std::vector<const MangledNode*>* arguments;
    const Scope* outer;
  };

  void Put(std::string_view text) {
    if (failed_ || text.size() > max_bytes_ - out_.size()) {
      failed_ = true;
      return;
    }
    out_ += text;
  }

  // Some nodes print nothing, so that the length of the output alone does not bound the work.
  bool Enter() {
    if (failed_ || depth_ >= kMaxDepth || steps_left_ == 0) {
      failed_ = true;
      return false;
    }
    --steps_left_;
    return true;
  }

  void Left(const MangledNode& node) {
    if (!Enter()) return;
    ++depth_;
    LeftOf(node);
    --depth_;
  }

  void Right(const MangledNode& node) {
    if (!Enter()) return;
    ++depth_;
    RightOf(node);
    --depth_;
  }

  void LeftOf(const MangledNode& node) {
    switch (node.kind) {
      case Kind::kText:
        return Put(node.text);
      case Kind::kNested:
      case Kind::kLocal:
        Whole(*node.first);
        Put("::");
        return Whole(*node.second);
      case Kind::kTemplate:
        Whole(*node.first);
        // Not "operator<<": that would be another operator.
        Put(!out_.empty() && out_.back() == '<' ? " <" : "<");
        List(node.items);
        return Put(!out_.empty() && out_.back() == '>' ? " >" : ">");
      case Kind::kQualified:
        Left(*node.first);
        if (!IsFunction(*node.first)) Put(node.text);
        return;
      case Kind::kPointer:
        return LeftOfPointer(node);
      case Kind::kMember:
        Left(*node.second);
        Put(IsFunction(*node.second) ? "(" : IsArray(*node.second) ? " (" : " ");
        Whole(*node.first);
        return Put("::*");
      case Kind::kFunction:
        Left(*node.items[0]);
        return Put(HasInnerDeclarator(*node.items[0]) ? "" : " ");
      case Kind::kArray:
        return Left(*node.first);
      case Kind::kPack:
        if (pack_index_ == kNoPack) return List(node.items);
        return ItemOf(node, &Printer::Left);
      case Kind::kExpansion:
        return Expand(*node.first);
      case Kind::kLiteral:
        Put("(");
        Whole(*node.first);
        Put(")");
        return Put(node.text);
      case Kind::kLambda: {
        Put("{lambda(");
        const bool outer = std::exchange(in_lambda_, true);
        List(node.items);
        in_lambda_ = outer;
        return Put(node.text);
      }
      case Kind::kParameter:
        if (in_lambda_) return Put(fmt::format("auto:{}", node.index + 1));
        return ArgumentOf(node, &Printer::Left);
      case Kind::kEncoding: {
        const Scope own{ArgumentsOf(node.second), scope_};
        const Scope* outer = std::exchange(scope_, &own);
        if (node.first != nullptr) {
          Left(*node.first);
          Put(HasInnerDeclarator(*node.first) ? "" : " ");
        }
        Whole(*node.second);
        Put("(");
        List(node.items);
        Put(")");
        Put(node.text);
        if (node.first != nullptr) Right(*node.first);
        scope_ = outer;
        return;
      }
      case Kind::kConversion:
        Put("operator ");
        return Whole(*node.first);
      case Kind::kAddress:
        Put("&");
        // Of a function the name alone.
        return Whole(node.first->kind == Kind::kEncoding ? *node.first->second : *node.first);
    }
  }

  void RightOf(const MangledNode& node) {
    switch (node.kind) {
      case Kind::kQualified:
        Right(*node.first);
        if (IsFunction(*node.first)) Put(node.text);
        return;
      case Kind::kPointer: {
        const Target target = Referred(node);
        if (IsFunction(*target.node) || IsArray(*target.node)) Put(")");
        return Print(target, &Printer::Right);
      }
      case Kind::kMember:
        if (IsFunction(*node.second) || IsArray(*node.second)) Put(")");
        return Right(*node.second);
      case Kind::kFunction:
        Put("(");
        List(std::vector<const MangledNode*>(node.items.begin() + 1, node.items.end()));
        Put(")");
        Put(node.text);
        return Right(*node.items[0]);
      case Kind::kArray:
        Put(!out_.empty() && out_.back() == ']' ? "[" : " [");
        Put(node.text);
        if (node.second != nullptr) Whole(*node.second);
        Put("]");
        return Right(*node.first);
      case Kind::kParameter:
        if (!in_lambda_) ArgumentOf(node, &Printer::Right);
        return;
      case Kind::kPack:
        if (pack_index_ != kNoPack) ItemOf(node, &Printer::Right);
        return;
      default:
        return;
    }
  }

  using Side = void (Printer::*)(const MangledNode&);

  // The item of a pack whose turn it is. Packs within it are printed whole.
  void ItemOf(const MangledNode& pack, Side side) {
    if (pack_index_ >= pack.items.size()) return;
    const size_t index = std::exchange(pack_index_, kNoPack);
    (this->*side)(*pack.items[index]);
    pack_index_ = index;
  }

  // The argument that a template parameter stands for. It was named outside the template.
  void ArgumentOf(const MangledNode& parameter, Side side) {
    const MangledNode* argument = KnownArgumentOf(parameter);
    if (argument == nullptr) {
      failed_ = true;
      return;
    }
    const Scope* inner = scope_;  // there is one, or the argument would not be known
    scope_ = inner->outer;
    (this->*side)(*argument);
    scope_ = inner;
  }

  // What a pointer stands before, when references to references have collapsed.
  struct Target {
    const MangledNode* node;
    bool in_argument;         // it lies within an argument or an item, not in the signature itself
    std::string_view symbol;  // *, & or &&
  };

  Target Referred(const MangledNode& node) {
    Target target{node.first, false, node.text};
    while (node.text != "*" && steps_left_ > 0) {
      const MangledNode& item = Item(*target.node);
      if (item.kind != Kind::kPointer || item.text == "*") break;
      target = {item.first, target.in_argument || &item != target.node,
                item.text == "&" ? std::string_view("&") : target.symbol};
    }
    return target;
  }

  void Print(const Target& target, Side side) {
    if (!target.in_argument) return (this->*side)(*target.node);
    const size_t index = std::exchange(pack_index_, kNoPack);
    const Scope* scope = scope_;
    if (scope_ != nullptr) scope_ = scope_->outer;
    (this->*side)(*target.node);
    scope_ = scope;
    pack_index_ = index;
  }

  void LeftOfPointer(const MangledNode& node) {
    const Target target = Referred(node);
    Print(target, &Printer::Left);
    if (IsFunction(*target.node)) Put("(");
    if (IsArray(*target.node)) Put(" (");
    Put(target.symbol);
  }

  // The arguments of the template that an encoding's name is, if it is one.
  static const std::vector<const MangledNode*>* ArgumentsOf(const MangledNode* name) {
    while (name->kind == Kind::kLocal) name = name->second;
    return name->kind == Kind::kTemplate ? &name->items : nullptr;
  }

  const MangledNode* KnownArgumentOf(const MangledNode& parameter) const {
    if (in_lambda_ || scope_ == nullptr || scope_->arguments == nullptr) return nullptr;
    if (parameter.index >= scope_->arguments->size()) return nullptr;
    return (*scope_->arguments)[parameter.index];
  }
  // What `node` stands for: the item of a pack whose turn it is, the argument of a parameter. A
  // hostile argument may stand for itself, so each step counts.
  const MangledNode& Item(const MangledNode& node) {
    const MangledNode* item = &node;
    while (steps_left_ > 0) {
      --steps_left_;
      const MangledNode* next = nullptr;
      if (item->kind == Kind::kPack && pack_index_ < item->items.size()) {
        next = item->items[pack_index_];
      } else if (item->kind == Kind::kParameter) {
        next = KnownArgumentOf(*item);
      }
      if (next == nullptr) break;
      item = next;
    }
    return *item;
  }

  // The same without qualifiers.
  const MangledNode& BareItem(const MangledNode& node) {
    const MangledNode* item = &Item(node);
    while (item->kind == Kind::kQualified && steps_left_ > 0) item = &Item(*item->first);
    return *item;
  }
  bool IsFunction(const MangledNode& node) { return BareItem(node).kind == Kind::kFunction; }
  bool IsArray(const MangledNode& node) { return BareItem(node).kind == Kind::kArray; }

  // A pointer to a function or an array: what it is the type of stands within its parentheses.
  bool HasInnerDeclarator(const MangledNode& node) {
    const MangledNode& item = BareItem(node);
    if (item.kind == Kind::kMember) return IsFunction(*item.second) || IsArray(*item.second);
    if (item.kind != Kind::kPointer) return false;
    const Target target = Referred(item);
    return IsFunction(*target.node) || IsArray(*target.node);
  }

  // With ", " between those that print something.
  void List(const std::vector<const MangledNode*>& items) {
    bool first = true;
    for (const MangledNode* item : items) {
      const size_t before = out_.size();
      if (!first) Put(", ");
      const size_t begin = out_.size();
      Whole(*item);
      if (failed_) return;
      if (out_.size() == begin) {
        out_.resize(before);
      } else {
        first = false;
      }
    }
  }

  void Expand(const MangledNode& pattern) {
    const MangledNode* pack = FindPack(pattern, 0);
    if (pack == nullptr) {  // a pack that nobody knows yet, as in a generic lambda
      Whole(pattern);
      return Put("...");
    }
    const size_t outer = pack_index_;
    bool first = true;
    for (size_t i = 0; i < pack->items.size() && !failed_; ++i) {
      if (!first) Put(", ");
      first = false;
      pack_index_ = i;
      Whole(pattern);
    }
    pack_index_ = outer;
  }

  // The first pack in `part`, which lies `depth` parts below the pattern of an expansion.
  const MangledNode* FindPack(const MangledNode& part, int depth) {
    if (depth > kMaxDepth || steps_left_ == 0) return nullptr;
    --steps_left_;
    const MangledNode* node = part.kind == Kind::kParameter ? KnownArgumentOf(part) : &part;
    if (node == nullptr || node->kind == Kind::kPack) return node;
    if (node->kind == Kind::kExpansion) return nullptr;
    for (const MangledNode* inner : {node->first, node->second}) {
      if (inner == nullptr) continue;
      if (const MangledNode* pack = FindPack(*inner, depth + 1)) return pack;
    }
    for (const MangledNode* inner : node->items) {
      if (const MangledNode* pack = FindPack(*inner, depth + 1)) return pack;
    }
    return nullptr;
  }

  size_t max_bytes_;
  size_t steps_left_;
  std::string& out_;
  const Scope* scope_ = nullptr;
  bool in_lambda_ = false;  // a template parameter is one of a generic lambda: auto
  size_t pack_index_ = kNoPack;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

bool PrintMangled(const MangledNode& root, size_t max_bytes, std::string& out) {
  return Printer(max_bytes, out).Print(root);
}

}  // namespace iket::capture
