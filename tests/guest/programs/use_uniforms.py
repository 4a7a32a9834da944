"""use_uniforms.py CUBIN OUTPUT: the same cubin with `UMOV UR1, 0` in the padding behind the kernel Run.

Nobody executes that word, and ptxas allocates no UR0..UR3; who looks at the code must refuse it.
"""

import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../codegen"))
from cubin import Cubin  # noqa: E402

with open(sys.argv[1], "rb") as file:
    image = file.read()
code = Cubin(image).code["Run"]
end = image.index(code) + len(code)
word = struct.pack("<QQ", 0x0000000000017882, 0x000FE40000000000)
with open(sys.argv[2], "wb") as file:
    file.write(image[:end - len(word)] + word + image[end:])
