#!/usr/bin/env python3
"""Writes small archives in each of the formats that Python's tarfile has: write.py FOLDER"""
import io
import pathlib
import sys
import tarfile

folder = pathlib.Path(sys.argv[1])
LONG = 'a folder with a long name/' * 5 + 'x' * 120


def add(archive, name, content=b'', kind=tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, len(content)
    archive.addfile(member, io.BytesIO(content))


for name, form in (('ustar', tarfile.USTAR_FORMAT), ('gnu', tarfile.GNU_FORMAT), ('pax', tarfile.PAX_FORMAT)):
    headers = {'comment': 'for all members'} if name == 'pax' else None
    with tarfile.open(folder / f'{name}.tar', 'w', format=form, pax_headers=headers) as archive:
        add(archive, 'train', kind=tarfile.DIRTYPE)
        add(archive, 'train/0.txt', b'first')
        add(archive, 'train/0.cls', b'7')
        add(archive, ('b' * 90 + '/' + 'c' * 90 if name == 'ustar' else LONG) + '.txt', bytes(range(256)) * 3)
        if name != 'ustar':
            add(archive, 'caf\u00e9/1.TXT', b'')
