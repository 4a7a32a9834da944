"""The little of a cubin that these tests look at, read with Python's own library."""
import struct

EIATTR_REGCOUNT = 0x2F
STT_OBJECT, STT_CUDA_OBJECT = 1, 13
SHT_NOBITS = 8


class Cubin:
    """Sections by name, code by kernel, register counts by kernel, data by symbol, and our declarations."""

    def __init__(self, data):
        assert data[:4] == b"\x7fELF"
        table, = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]

        def body(i):
            return data[headers[i][4]:headers[i][4] + headers[i][5]]

        def text(strings, at):
            return strings[at:strings.index(b"\0", at)].decode()

        sections = {text(body(names), header[0]): i for i, header in enumerate(headers)}
        self.bodies = {name: body(i) for name, i in sections.items()}
        self.code = {name[len(".text."):]: body(i) for name, i in sections.items()
                     if name.startswith(".text.")}
        symbols, strings = body(sections[".symtab"]), body(sections[".strtab"])
        rows = list(struct.iter_unpack("<IBBHQQ", symbols))
        self.registers = {}
        info = body(sections[".nv.info"])
        at = 0
        while at < len(info):
            form, attribute, value = struct.unpack_from("<BBH", info, at)
            at += 4
            if form == 4:
                if attribute == EIATTR_REGCOUNT:
                    symbol, registers = struct.unpack_from("<II", info, at)
                    self.registers[text(strings, rows[symbol][0])] = registers
                at += value
        self.objects = {text(strings, name): bytes(body(section)[value:value + length])
                        for name, info, _, section, value, length in rows
                        if info & 15 in (STT_OBJECT, STT_CUDA_OBJECT) and section < count and headers[section][1] != SHT_NOBITS}
        self.declarations = set()
        for name, _, _, section, value, length in rows:
            if "iket_decl" in text(strings, name):
                assert section < count and headers[section][1] != SHT_NOBITS, "a declaration without bytes"
                self.declarations.add(bytes(body(section)[value:value + length]))
