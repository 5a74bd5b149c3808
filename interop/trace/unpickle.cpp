// The table of opcodes. The names are those of Python's pickletools, which documents each.
#include "interop/trace/unpickle.hpp"

#include <array>

#include <fmt/format.h>

#include "interop/trace/pickle_machine.hpp"

namespace cistern::trace {
namespace {

using Machine = PickleMachine;
using Kind = ValueKind;

constexpr unsigned char kStop = '.';

struct Opcode {
  const char* name = nullptr;       // null: no such opcode
  void (*run)(Machine&) = nullptr;  // null: refused
};
using Table = std::array<Opcode, 256>;

void checkProtocol(Machine& machine) {
  constexpr std::uint64_t kLatest = 5;
  const std::uint64_t protocol = machine.takeNumber(1);
  if (protocol > kLatest) {
    machine.fail(fmt::format("expected a protocol up to {}, found {}", kLatest, protocol));
  }
}

// A frame only promises so many bytes for the unpickler to fetch at once; they hold opcodes.
void skipFrameLength(Machine& machine) { machine.takeNumber(8); }

// Without its quotes.
void pushQuoted(Machine& machine) {
  const std::string_view text = machine.takeLine();
  if (text.size() < 2 || text.front() != text.back()) {
    machine.fail(fmt::format("expected a quoted string, found {}", quoted(text)));
  }
  machine.pushText(Kind::kString, text.substr(1, text.size() - 2));
}

void pushLongLine(Machine& machine) {
  std::string_view text = machine.takeLine();
  if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
  machine.pushDecimal(text == "00" || text == "01" ? text.substr(1) : text);
}

void pushInt32(Machine& machine) {
  machine.pushInteger(static_cast<std::int32_t>(machine.takeNumber(4)));
}

template <std::size_t kWidth>
void pushUnsigned(Machine& machine) {
  machine.pushInteger(static_cast<std::int64_t>(machine.takeNumber(kWidth)));
}
template <std::size_t kWidth>
void pushLong(Machine& machine) {
  machine.pushLong(machine.take(machine.takeNumber(kWidth)));
}
template <Kind kKind, std::size_t kWidth>
void pushText(Machine& machine) {
  machine.pushText(kKind, machine.take(machine.takeNumber(kWidth)));
}
template <Kind kKind>
void pushEmpty(Machine& machine) {
  machine.pushContainer(kKind, {});
}
template <Kind kKind>
void pushFromMark(Machine& machine) {
  machine.pushContainer(kKind, machine.popToMark());
}
template <std::size_t kCount>
void pushTuple(Machine& machine) {
  machine.pushContainer(Kind::kTuple, machine.popCount(kCount));
}
template <Kind kKind>
void pushPlain(Machine& machine) {
  machine.push(kKind);
}
template <std::size_t kWidth>
void remember(Machine& machine) {
  machine.remember(machine.takeNumber(kWidth));
}
template <std::size_t kWidth>
void recall(Machine& machine) {
  machine.recall(machine.takeNumber(kWidth));
}

constexpr void addScalars(Table& table) {
  table['N'] = {"NONE", pushPlain<Kind::kNone>};
  table[0x88] = {"NEWTRUE", [](Machine& m) { m.pushBool(true); }};
  table[0x89] = {"NEWFALSE", [](Machine& m) { m.pushBool(false); }};
  table['I'] = {"INT", [](Machine& m) { m.pushDecimal(m.takeLine()); }};
  table['L'] = {"LONG", pushLongLine};
  table['J'] = {"BININT", pushInt32};
  table['K'] = {"BININT1", pushUnsigned<1>};
  table['M'] = {"BININT2", pushUnsigned<2>};
  table[0x8a] = {"LONG1", pushLong<1>};
  table[0x8b] = {"LONG4", pushLong<4>};
  table['F'] = {"FLOAT", [](Machine& m) { m.takeLine(), m.push(Kind::kFloat); }};
  table['G'] = {"BINFLOAT", [](Machine& m) { m.take(8), m.push(Kind::kFloat); }};
}

constexpr void addTexts(Table& table) {
  table['S'] = {"STRING", pushQuoted};
  table['T'] = {"BINSTRING", pushText<Kind::kString, 4>};
  table['U'] = {"SHORT_BINSTRING", pushText<Kind::kString, 1>};
  table['V'] = {"UNICODE", [](Machine& m) { m.pushText(Kind::kString, m.takeLine()); }};
  table['X'] = {"BINUNICODE", pushText<Kind::kString, 4>};
  table[0x8c] = {"SHORT_BINUNICODE", pushText<Kind::kString, 1>};
  table[0x8d] = {"BINUNICODE8", pushText<Kind::kString, 8>};
  table['B'] = {"BINBYTES", pushText<Kind::kBytes, 4>};
  table['C'] = {"SHORT_BINBYTES", pushText<Kind::kBytes, 1>};
  table[0x8e] = {"BINBYTES8", pushText<Kind::kBytes, 8>};
  table[0x96] = {"BYTEARRAY8", pushText<Kind::kBytes, 8>};
}

constexpr void addContainers(Table& table) {
  table[']'] = {"EMPTY_LIST", pushEmpty<Kind::kList>};
  table['l'] = {"LIST", pushFromMark<Kind::kList>};
  table['a'] = {"APPEND", [](Machine& m) { m.extendTop(Kind::kList, m.popCount(1)); }};
  table['e'] = {"APPENDS", [](Machine& m) { m.extendTop(Kind::kList, m.popToMark()); }};
  table[')'] = {"EMPTY_TUPLE", pushEmpty<Kind::kTuple>};
  table['t'] = {"TUPLE", pushFromMark<Kind::kTuple>};
  table[0x85] = {"TUPLE1", pushTuple<1>};
  table[0x86] = {"TUPLE2", pushTuple<2>};
  table[0x87] = {"TUPLE3", pushTuple<3>};
  table['}'] = {"EMPTY_DICT", pushEmpty<Kind::kDict>};
  table['d'] = {"DICT", [](Machine& m) { m.pushDict(m.popToMark()); }};
  table['s'] = {"SETITEM", [](Machine& m) { m.extendTopDict(m.popCount(2)); }};
  table['u'] = {"SETITEMS", [](Machine& m) { m.extendTopDict(m.popToMark()); }};
  table[0x8f] = {"EMPTY_SET", pushEmpty<Kind::kSet>};
  table[0x90] = {"ADDITEMS", [](Machine& m) { m.extendTop(Kind::kSet, m.popToMark()); }};
  table[0x91] = {"FROZENSET", pushFromMark<Kind::kSet>};
}

constexpr void addMachinery(Table& table) {
  table[0x80] = {"PROTO", checkProtocol};
  table[0x95] = {"FRAME", skipFrameLength};
  table['('] = {"MARK", [](Machine& m) { m.pushMark(); }};
  table['0'] = {"POP", [](Machine& m) { m.popValueOrMark(); }};
  table['1'] = {"POP_MARK", [](Machine& m) { m.popToMark(); }};
  table['2'] = {"DUP", [](Machine& m) { m.pushTopAgain(); }};
  table['p'] = {"PUT", [](Machine& m) { m.remember(m.takeDecimal()); }};
  table['q'] = {"BINPUT", remember<1>};
  table['r'] = {"LONG_BINPUT", remember<4>};
  table[0x94] = {"MEMOIZE", [](Machine& m) { m.rememberNext(); }};
  table['g'] = {"GET", [](Machine& m) { m.recall(m.takeDecimal()); }};
  table['h'] = {"BINGET", recall<1>};
  table['j'] = {"LONG_BINGET", recall<4>};
  table[kStop] = {"STOP", [](Machine&) {}};
}

// Those that import, call or ask the program for something. They are known only to be named.
constexpr void addRefused(Table& table) {
  table['c'] = {"GLOBAL", nullptr};
  table[0x93] = {"STACK_GLOBAL", nullptr};
  table['i'] = {"INST", nullptr};
  table['o'] = {"OBJ", nullptr};
  table['R'] = {"REDUCE", nullptr};
  table['b'] = {"BUILD", nullptr};
  table[0x81] = {"NEWOBJ", nullptr};
  table[0x92] = {"NEWOBJ_EX", nullptr};
  table[0x82] = {"EXT1", nullptr};
  table[0x83] = {"EXT2", nullptr};
  table[0x84] = {"EXT4", nullptr};
  table['P'] = {"PERSID", nullptr};
  table['Q'] = {"BINPERSID", nullptr};
  table[0x97] = {"NEXT_BUFFER", nullptr};
  table[0x98] = {"READONLY_BUFFER", nullptr};
}

constexpr Table kOpcodes = [] {
  Table table{};
  addScalars(table);
  addTexts(table);
  addContainers(table);
  addMachinery(table);
  addRefused(table);
  return table;
}();

void runOpcode(Machine& machine, unsigned char code) {
  const Opcode& opcode = kOpcodes[code];
  if (!opcode.name) machine.fail(fmt::format("expected an opcode, found 0x{:02x}", code));
  machine.setOpcodeName(opcode.name);
  if (!opcode.run) machine.fail("refused; expected plain data, this names or runs code");
  opcode.run(machine);
}

}  // namespace

PickleDocument unpickle(ByteSource& source, const std::string& file, ItemTaker* taker) {
  Machine machine(source, file, taker);
  unsigned char code = 0;
  do {
    code = machine.nextOpcode();
    runOpcode(machine, code);
    machine.requireModest();
  } while (code != kStop);
  machine.requireEnd();
  return machine.finish();
}

}  // namespace cistern::trace
