import re,subprocess,collections,sys
sys.path.insert(0,'/work/house/tools')
import code_figures as c
from check_layers import sources, included, ROOT
users=collections.defaultdict(set); text={}
for p in sources('src'):
    r=p.relative_to(ROOT/'src').as_posix(); text[r]=c.plain(p)
    for n in included(p): users[n].add(r)
defs=collections.defaultdict(list)
for r,t in text.items():
    if r.endswith('.hpp'):
        for m in re.finditer(r'^(?:template.*>\n)?(?:class|struct|enum class|using)\s+(\w+)',t,re.M): defs[m[1]].append(r)
for h in sorted(text):
    if not h.endswith('.hpp'): continue
    u=users[h]-{h[:-3]+'cpp'}
    if len(u)>1: continue
    names=[n for n,d in defs.items() if d==[h]]
    extra=[]
    for r,t in text.items():
        if r in u or r==h or r==h[:-3]+'cpp': continue
        hit=[n for n in names if re.search(r'\b%s\b'%n,t)]
        if hit: extra.append((r,hit))
    if extra: print(h,'<-',sorted(u),'ALSO',[ (r,hh[:3]) for r,hh in extra][:6])
